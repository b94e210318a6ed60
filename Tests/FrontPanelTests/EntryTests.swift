// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import FrontPanel
import MobileAuth
import Secrets
import Testing

@Suite(.timeLimit(.minutes(5))) struct EntryTests {
  typealias Event = EntryRecognizer.Event

  private let digits = WatchedDigits()

  /// Keys by character: digits, `E`nter, `D`elete, `C`lear, `X` for escape, `O`ther.
  private func press(_ key: Character) -> KeyPress {
    switch key {
    case "E": .enter
    case "D": .delete
    case "C": .clear
    case "X": .escape
    case "O": .other
    default: .digit(digits.make(key.asciiValue!))
    }
  }

  private func moment(_ milliseconds: Int) -> MonotonicInstant {
    MonotonicInstant(uptime: .milliseconds(5_000_000 + milliseconds))
  }

  /// Presses the keys at their times (milliseconds from arming; the guard time ends at 500) and calls the recognizer's
  /// timeouts when due, as the panel does.
  private func events(_ keys: [(Int, Character)], prompt: Prompt = .digits(count: 5), until end: Int = 0) -> [Event] {
    var recognizer = EntryRecognizer(for: prompt, earliestKey: moment(500), idle: .seconds(30))
    var events: [Event] = []
    func pass(_ recognizer: inout EntryRecognizer, until limit: Int) {
      while let next = recognizer.nextDeadline, next <= moment(limit) { events += recognizer.time(next) }
    }
    for (at, key) in keys {
      pass(&recognizer, until: at)
      events += recognizer.key(press(key), at: moment(at))
      #expect(digits.count == 0, "every digit is taken")
    }
    pass(&recognizer, until: end)
    return events.filter { $0 != .keyed }
  }

  /// One key every 100 ms from the end of the guard time.
  private func events(_ keys: String, prompt: Prompt = .digits(count: 5)) -> [Event] {
    events(zip(0..., keys).map { (500 + 100 * $0, $1) }, prompt: prompt)
  }

  @Test(
    "What is typed is entered",
    arguments: [
      ("13579E", "13579"), ("O1O3579E", "13579"), ("12D3579E", "13579"), ("9DD13579E", "13579"),
      ("99C13579E", "13579"), ("99X13579E", "13579"), ("X1X13579E", "13579"), ("123E13579E", "13579"),
      ("123456E13579E", "13579"), ("00000E", "00000"), ("135790DE", "13579"),
    ])
  func whatIsTypedIsEntered(keys: String, entered: String) {
    #expect(events(keys).last == .entered(EnteredDigits(typing: entered)))
  }

  @Test(
    "Keys do what they are for",
    arguments: [
      ("", []), ("E", [.wrongLength]), ("D", []), ("C", []), ("O", []), ("X", []), ("XX", [.canceled]),
      ("1", [.touched]), ("123", [.touched]), ("1D", [.touched, .released]), ("12D", [.touched]),
      ("12C", [.touched, .released]), ("12X", [.touched, .released]), ("12XX", [.touched, .released, .canceled]),
      ("XOX", [.canceled]), ("XCX", []), ("X1X", [.touched, .released]), ("XEX", [.wrongLength]),
      ("1234E", [.touched, .released, .wrongLength]), ("123456E", [.touched, .released, .wrongLength]),
      ("1234E5", [.touched, .released, .wrongLength, .touched]),
    ] as [(String, [Event])])
  func keysDoWhatTheyAreFor(keys: String, expected: [Event]) {
    #expect(events(keys) == expected)
  }

  @Test(
    "A confirmation can only be canceled",
    arguments: [
      ("12345E", []), ("X", []), ("XX", [.canceled]), ("X1X", [.canceled]),
    ] as [(String, [Event])])
  func aConfirmationCanOnlyBeCanceled(keys: String, expected: [Event]) {
    for prompt in [Prompt.confirmation, .denial] { #expect(events(keys, prompt: prompt) == expected) }
  }

  @Test("What cannot be undone can only be given up by keys") func whatCannotBeUndoneCanOnlyBeGivenUpByKeys() {
    #expect(events("12345ECD", prompt: .veryLongHold) == [])
    #expect(events("12XX", prompt: .veryLongHold) == [.canceled])
  }

  @Test("Keys before the end of the guard time count for nothing") func keysBeforeTheEndOfTheGuardTimeCountForNothing()
  {
    #expect(
      events([(0, "9"), (499, "9"), (500, "1"), (600, "E")], prompt: .digits(count: 1)).last
        == .entered(EnteredDigits(typing: "1")))
    #expect(events([(499, "X"), (500, "X")]) == [.tooEarly])
  }

  @Test("What waits too long is wiped") func whatWaitsTooLongIsWiped() {
    #expect(events([(1000, "1"), (30_999, "2")], until: 60_998) == [.touched])
    #expect(events([(1000, "1"), (30_999, "2")], until: 60_999) == [.touched, .released])
    // Also if the timeout of the recognizer was not called in time.
    #expect(events([(1000, "1"), (31_000, "2")]) == [.touched, .released, .touched])
    #expect(events([(1000, "X"), (31_000, "X")]) == [])
  }

  @Test("A prompt may listen to the keypad and to the button") func promptMayListenToKeypadAndButton() {
    let prompt = Prompt([.gesture(.hold), .digits(count: 3)])
    #expect(events("123E", prompt: prompt).last == .entered(EnteredDigits(typing: "123")))
    #expect(events("XX", prompt: prompt) == [.canceled])
    var gestures = GestureRecognizer(for: prompt, timing: GestureTiming(), armedAt: moment(0), isDown: false)
    #expect(gestures.press(.approve, at: moment(600)) == [.touched])
    let held = [.longEnoughToAccept, .gesture(Gesture(.hold, held: .seconds(1)))] as [GestureRecognizer.Event]
    #expect(gestures.release(at: moment(1600)) == held)
  }

  @Test("A prompt may take several numbers of digits", arguments: ["5", "51"]) func severalCounts(keys: String) {
    let prompt = Prompt.digits(counts: 1...2)
    #expect(events(keys + "E", prompt: prompt).last == .entered(EnteredDigits(typing: keys)))
    #expect(events("E", prompt: prompt) == [.wrongLength])
    #expect(events("510E", prompt: prompt).last == .wrongLength)
  }

  @Test("A code has any length", arguments: ["1", "0042", String(repeating: "7", count: 32)])
  func codeOfAnyLength(code: String) {
    for prompt in [Prompt.code(orEnterAlone: false), .code(orEnterAlone: true)] {
      #expect(events(code + "E", prompt: prompt).last == .entered(EnteredDigits(typing: code)))
      #expect(events("XX", prompt: prompt).last == .canceled)
    }
  }

  @Test("Enter alone is an input only where the prompt takes it") func enterAlone() {
    #expect(events("E", prompt: .code(orEnterAlone: true)) == [.enteredNothing])
    #expect(events("12CE", prompt: .code(orEnterAlone: true)).last == .enteredNothing)
    for prompt in [Prompt.code(orEnterAlone: false), .digits(count: 5)] {
      #expect(events("E", prompt: prompt) == [.wrongLength])
    }
    #expect(events("E", prompt: .confirmation) == [])
  }

  @Test(
    "Every prompt can be denied",
    arguments: [
      Prompt.confirmation, .digits(count: 5), .denial, .veryLongHold, Prompt([]), Prompt([.digits(count: 1)]),
      .code(orEnterAlone: true),
    ])
  func everyPromptCanBeDenied(prompt: Prompt) {
    #expect(prompt.gestures.isSuperset(of: [.doublePress, .denyButton, .veryLongHold, .cancelKeys]))
    #expect(prompt.gestures.contains(.hold) == (prompt == .confirmation))
    #expect(events("XX", prompt: prompt).last == .canceled)
  }

  @Test("Every key with a meaning is reported") func everyKeyWithAMeaningIsReported() {
    var recognizer = EntryRecognizer(for: .digits(count: 5), earliestKey: moment(0), idle: .seconds(30))
    for key in "1EDCXO" {
      #expect(recognizer.key(press(key), at: moment(0)).contains(.keyed) == (key != "O"), "\(key)")
    }
  }

  /// For random keys the entry equals that of a simple line editor at Enter.
  @Test("A random typist enters what a naive line would hold") func aRandomTypistEntersWhatANaiveLineWouldHold() {
    let seed = UInt64.random(in: .min ... .max)
    var random = SeededGenerator(seed: seed)
    let alphabet = Array("0123456789012345678901234567890123456789EEEDCXO")
    for _ in 0..<2000 {
      let keys = (0..<40).map { _ in alphabet[Int(random.next() % UInt64(alphabet.count))] }
      var expected: [Event] = []
      var line = ""
      var escaped = false
      for key in keys {
        switch key {
        case "E":
          if line.count == 5 { expected.append(.entered(EnteredDigits(typing: line))) }
          line = ""
        case "D": line = String(line.dropLast())
        case "C": line = ""
        case "X":
          if escaped { expected.append(.canceled) }
          line = ""
        case "O": continue
        default: line.append(key)
        }
        escaped = key == "X"
      }
      let outcomes = events(String(keys)).filter {
        switch $0 {
        case .entered, .canceled: true
        default: false
        }
      }
      #expect(outcomes == expected, "seed \(seed), keys \(String(keys))")
    }
  }
}
