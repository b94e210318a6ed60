// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import GPIO

/// Two buttons with their debouncers, as `BankLoop` reads them. Times are in milliseconds.
private struct Buttons {
  private let windows: [Duration]
  private var debouncers: [Debouncer]
  private var order = EventOrder()
  private(set) var heard: [String] = []

  init(_ windows: Int...) {
    self.windows = windows.map { .milliseconds($0) }
    debouncers = self.windows.map { Debouncer(window: $0, isActive: false) }
  }

  mutating func wake(at now: Int, _ edges: (input: Int, isActive: Bool, at: Int)...) {
    let moment = Duration.milliseconds(now)
    for index in debouncers.indices {
      var settled: [Debouncer.Edge?] = []
      for edge in edges where edge.input == index {
        settled.append(debouncers[index].edge(isActive: edge.isActive, at: .milliseconds(edge.at)))
      }
      settled.append(debouncers[index].time(moment))
      for edge in settled.compactMap({ $0 }) {
        order.add(index, .edge(isActive: edge.isActive, at: edge.at), now: moment)
      }
    }
    take(at: moment)
  }

  mutating func fail(_ input: Int, at now: Int) {
    let moment = Duration.milliseconds(now)
    debouncers[input] = Debouncer(window: windows[input], isActive: false)
    order.add(input, .unavailable(.edgesLost(offset: input)), now: moment)
    order.add(input, .opened(isActive: false, at: moment), now: moment)
    take(at: moment)
  }

  private mutating func take(at now: Duration) {
    for entry in order.take(now: now, unsettled: debouncers.compactMap(\.unsettledSince).min()) {
      switch entry.event {
      case .edge(let isActive, let at): heard.append("\(entry.input) \(isActive ? "down" : "up") \(at)")
      case .opened: heard.append("\(entry.input) opened")
      case .unavailable: heard.append("\(entry.input) unavailable")
      }
    }
  }
}

@Suite("The order of the events of two buttons", .timeLimit(.minutes(1))) struct EventOrderTests {
  private let pressedBoth = ["0 down \(Duration.zero)", "1 down \(Duration.milliseconds(800))"]
  private let released = "0 up \(Duration.milliseconds(820))"

  /// Fails if the release comes first: then the hold approves.
  @Test("A release waits for a press before it that settles later") func differentWindows() {
    var buttons = Buttons(5, 50)
    buttons.wake(at: 0, (0, true, 0))
    buttons.wake(at: 6)
    buttons.wake(at: 800, (1, true, 800))
    buttons.wake(at: 820, (0, false, 820))
    buttons.wake(at: 826)
    #expect(buttons.heard == [pressedBoth[0]])
    buttons.wake(at: 851)
    #expect(buttons.heard == pressedBoth + [released])
  }

  @Test("What a late thread reads at once comes in the order of its times") func lateThread() {
    var buttons = Buttons(5, 50)
    buttons.wake(at: 1000, (0, true, 0), (0, false, 820), (1, true, 800), (1, false, 900))
    #expect(buttons.heard == pressedBoth + [released, "1 up \(Duration.milliseconds(900))"])
  }

  @Test("A press after an unsettled release waits, and one before it does not") func unsettledRelease() {
    var buttons = Buttons(50, 5)
    buttons.wake(at: 0, (0, true, 0))
    buttons.wake(at: 51)
    buttons.wake(at: 106, (1, true, 95), (0, false, 100))
    #expect(buttons.heard.count == 2)
    buttons.wake(at: 126, (1, false, 120))
    #expect(buttons.heard.count == 2)
    buttons.wake(at: 151)
    #expect(
      buttons.heard.suffix(2) == ["0 up \(Duration.milliseconds(100))", "1 up \(Duration.milliseconds(120))"])
  }

  @Test("A contact that only bounced holds nothing back after that") func glitch() {
    var buttons = Buttons(5, 50)
    buttons.wake(at: 0, (0, true, 0))
    buttons.wake(at: 800, (1, true, 800), (1, false, 801))
    buttons.wake(at: 826, (0, false, 820))
    #expect(buttons.heard.count == 1)
    buttons.wake(at: 852)
    #expect(buttons.heard == [pressedBoth[0], released])
  }

  /// Fails if a broken switch blocks the other button.
  @Test("A contact that never settles holds events back for 50 ms") func chatter() {
    var buttons = Buttons(5, 50)
    buttons.wake(at: 0, (0, true, 0))
    var isClosed = false
    for moment in stride(from: 10, through: 890, by: 10) {
      isClosed.toggle()
      buttons.wake(at: moment, (1, isClosed, moment))
    }
    buttons.wake(at: 896, (0, false, 890))
    #expect(buttons.heard.count == 1)
    buttons.wake(at: 940, (1, true, 940))
    #expect(buttons.heard.count == 1)
    buttons.wake(at: 946, (1, false, 946))
    #expect(buttons.heard == [pressedBoth[0], "0 up \(Duration.milliseconds(890))"])
  }

  @Test("A fault comes at once, before what is held back of the other button, and in place of the failed one's")
  func fault() {
    var buttons = Buttons(5, 50)
    buttons.wake(at: 0, (0, true, 0))
    buttons.wake(at: 800, (1, true, 800))
    buttons.wake(at: 826, (0, false, 820))
    #expect(buttons.heard == [pressedBoth[0]])
    buttons.fail(1, at: 830)
    #expect(buttons.heard == [pressedBoth[0], "1 unavailable", released, "1 opened"])
    buttons.wake(at: 900, (1, true, 895))
    buttons.wake(at: 906, (0, true, 900))
    buttons.fail(0, at: 907)
    #expect(buttons.heard.suffix(1) == ["0 unavailable"])
    buttons.wake(at: 946)
    #expect(buttons.heard.suffix(2) == ["1 down \(Duration.milliseconds(895))", "0 opened"])
  }
}
