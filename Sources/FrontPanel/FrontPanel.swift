public import MobileAuth

/// The panel of a board: one button, one LED. `run()` drains the button for as long as the panel lives, so that a
/// stray press is taken and forgotten before a challenge is armed.
public actor FrontPanel: Panel {
  private struct Armed {
    let number: Int
    var recogniser: GestureRecogniser
    let continuation: AsyncStream<PanelEvent>.Continuation
  }

  private let button: any Button
  private let player: LEDPlayer
  private let timekeeper: any Timekeeper
  private let timing: GestureTiming

  private var isDown = false
  private var armed: Armed?
  private var armings = 0
  private var timer: Task<Void, Never>?
  /// What the handler wants shown; a finger on the button shows something else meanwhile.
  private var indication = Indication.disconnected

  public init(
    button: any Button, indicator: any Indicator, timekeeper: any Timekeeper, timing: GestureTiming = GestureTiming()
  ) {
    self.button = button
    player = LEDPlayer(indicator: indicator, timekeeper: timekeeper)
    self.timekeeper = timekeeper
    self.timing = timing
  }

  /// Runs until the task is cancelled; the LED is dark afterwards.
  public func run() async {
    for await event in button.events { receive(event) }
    timer?.cancel()
    armed?.continuation.finish()
    player.stop()
  }

  public func show(_ indication: Indication) async {
    self.indication = indication
    player.play(indication)
    // A confirmation is seen to its end, whoever is next.
    switch indication {
    case .confirmed, .denied, .pinWrong, .pinRefused:
      try? await timekeeper.sleep(until: timekeeper.now + indication.pattern.length)
    default: break
    }
  }

  /// What the LED says now.
  public var showing: Indication { player.showing ?? .disconnected }

  public nonisolated func events(for prompt: Prompt) -> AsyncStream<PanelEvent> {
    AsyncStream(bufferingPolicy: .bufferingNewest(64)) { continuation in
      Task { await self.arm(continuation) }
    }
  }

  private func arm(_ continuation: AsyncStream<PanelEvent>.Continuation) {
    armed?.continuation.finish()
    armings += 1
    let number = armings
    armed = Armed(
      number: number,
      recogniser: GestureRecogniser(timing: timing, armedAt: timekeeper.now, isDown: isDown), continuation: continuation
    )
    continuation.onTermination = { _ in Task { await self.disarm(number) } }
    schedule()
  }

  private func disarm(_ number: Int) {
    guard armed?.number == number else { return }
    armed = nil
    schedule()
  }

  private func receive(_ event: ButtonEvent) {
    switch event {
    case .down(let moment):
      isDown = true
      report(armed?.recogniser.press(at: moment) ?? [])
    case .up(let moment):
      isDown = false
      report(armed?.recogniser.release(at: moment) ?? [])
    case .unavailable(let why):
      // What was held when the line went away is not a gesture: begin again, as if it were still down.
      isDown = true
      armed?.recogniser = GestureRecogniser(timing: timing, armedAt: timekeeper.now, isDown: true)
      armed?.continuation.yield(.released)
      armed?.continuation.yield(.unavailable(why))
    }
    schedule()
  }

  /// Wakes the recogniser when time alone changes something.
  private func schedule() {
    timer?.cancel()
    timer = nil
    guard let moment = armed?.recogniser.nextMoment else { return }
    timer = Task {
      guard (try? await timekeeper.sleep(until: moment)) != nil, !Task.isCancelled else { return }
      report(armed?.recogniser.time(timekeeper.now) ?? [])
      schedule()
    }
  }

  private func report(_ findings: [GestureRecogniser.Finding]) {
    for finding in findings {
      switch finding {
      case .touched: armed?.continuation.yield(.touched)
      case .released:
        armed?.continuation.yield(.released)
        player.play(indication)
      case .longEnoughToAccept: player.play(.releaseToAccept)
      case .longEnoughToReport: player.play(.releaseToReport)
      case .stuck:
        armed?.continuation.yield(.stuck)
        player.play(.misconfigured)
      case .gesture(let gesture):
        armed?.continuation.yield(.gesture(gesture))
        armed?.continuation.finish()
        armed = nil
      }
    }
  }

}
