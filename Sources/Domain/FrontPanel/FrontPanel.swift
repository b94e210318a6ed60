// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import Synchronization

/// The panel of a board: one button, one LED, an optional buzzer and an optional keypad. `run()` reads button and
/// keypad events for the lifetime of the panel, so that a press before a prompt is armed is consumed and ignored.
package actor FrontPanel: Panel {
  /// The armed prompt. Typed digits are wiped when it ends.
  struct Armed: ~Copyable {
    let number: Int
    /// The end of the guard time. A press or key that begins before it is ignored.
    let earliest: MonotonicInstant
    var gestures: GestureRecognizer
    var entry: EntryRecognizer
    var isButtonTouched = false
    var isTouchReported = false
    let reportsTyping: Bool
    /// Whether a very long hold confirms.
    let confirmsLongest: Bool
    let continuation: AsyncStream<PanelEvent>.Continuation

    /// Reports `.touched` and `.released`: the handler pins a request while the button is down or digits are typed.
    mutating func reportTouch() {
      let isTouched = isButtonTouched || entry.isTyping
      if isTouchReported != isTouched { continuation.yield(isTouched ? .touched : .released) }
      isTouchReported = isTouched
    }

    /// Reports `.stuck`, which ends the touch of the button. Digits that are being typed are reported as touched again.
    mutating func reportStuck() {
      continuation.yield(.stuck)
      isButtonTouched = false
      isTouchReported = false
      reportTouch()
    }
  }

  private let button: any Button
  let keypad: (any Keypad)?
  let player: LEDPlayer
  let sounder: (any Sounder)?
  let clock: any TokenClock
  private let timing: GestureTiming
  let settings: EntrySettings

  var isDown = false
  /// Why the button is unavailable; nil while it works. While set, no approval is possible, not even by PIN, because
  /// the LED shares the chip.
  package internal(set) var buttonTrouble: String? {
    didSet { if buttonTrouble != oldValue { troublesChanging.yield() } }
  }
  /// Whether the LED was dark since it was last idle: the user may not have seen what it showed.
  var mayBeUnseen = false
  /// Why the keypad is unavailable; nil while it works.
  package internal(set) var keypadTrouble: String? {
    didSet { if keypadTrouble != oldValue { troublesChanging.yield() } }
  }
  /// Yields when `troubles` may have changed. For one consumer.
  package nonisolated let troubleChanges: AsyncStream<Void>
  private let troublesChanging: AsyncStream<Void>.Continuation
  var armed: Armed?
  private let armings = Atomic(0)
  /// The number of the newest prompt that was armed or has ended.
  private var newest = 0
  private var timer: Task<Void, Never>?
  /// The indication that the handler has set. The panel's own indications (`ignored`, `entering` and others) replace it
  /// for a time.
  private var indication = Indication.disconnected
  /// The number of open requests, as passed to `note(openRequests:)`.
  private var openRequests = 0
  /// The time until which the present indication is played to its end; nil if it may be replaced.
  private var playedUntil: MonotonicInstant?
  private var isPlayedAgain = false
  /// Plays an indication that a press can end.
  private var playing: (task: Task<Void, Never>, beginning: MonotonicInstant)?
  private var flashing: Task<Void, Never>?
  var sounding: Task<Void, Never>?
  var soundings = 0

  package init(
    button: any Button, indicator: any Indicator, sounder: (any Sounder)? = nil, keypad: (any Keypad)? = nil,
    clock: any TokenClock, timing: GestureTiming = GestureTiming(), entry: EntrySettings = EntrySettings()
  ) {
    self.button = button
    self.keypad = keypad
    self.sounder = sounder
    (troubleChanges, troublesChanging) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    player = LEDPlayer(indicator: indicator, clock: clock)
    self.clock = clock
    self.timing = timing
    settings = entry
  }

  /// Reads events until the task is canceled. Afterwards the LED is dark, the buzzer is silent and typed digits are
  /// wiped.
  package func run() async {
    await withDiscardingTaskGroup { group in
      if let keypad {
        group.addTask { for await event in keypad.events { await self.receive(event) } }
      }
      for await event in button.events { receive(event) }
      group.cancelAll()
    }
    timer?.cancel()
    flashing?.cancel()
    armed?.continuation.finish()
    armed = nil
    player.stop()
    sounding?.cancel()
    sounder?.sound(false)
  }

  package nonisolated var canType: Bool { keypad != nil }

  /// The number of keypad events received since the panel started.
  package internal(set) var keypadEvents = 0

  /// The present faults of the button and the keypad as text for the operator; empty if there are none.
  package var troubles: [String] { [buttonTrouble, keypadTrouble].compactMap(\.self) }

  package func show(_ indication: Indication) async {
    let isNew = self.indication != indication
    self.indication = indication
    if case .idle = indication, buttonTrouble == nil { mayBeUnseen = false }
    let row = indication.row
    // One of two outcomes in a row that are the same would not be seen.
    let isAgain = !isNew && (row.playsToEnd == .yes || row.playsToEnd == .unlessPressed)
    // What the user does at this prompt stays visible: that digits are typed, or what a release would do.
    if row.playsToEnd != .no || armed?.isTouchReported != true {
      light(indication, again: isAgain)
    } else if !isReleaseShown || armed?.isButtonTouched != true {
      lightAgain()
    }
    if isNew || isAgain { sound(indication) }
    guard row.playsToEnd != .no, row.playsToEnd != .whenNew || isNew else { return playedUntil = nil }
    isPlayedAgain = false
    playedUntil = clock.now + row.pattern.length
    if row.playsToEnd == .unlessPressed {
      let task = Task { await playToEnd() }
      playing = (task, clock.now)
      await withTaskCancellationHandler {
        await task.value
      } onCancel: {
        task.cancel()
      }
      playing = nil
    } else {
      await playToEnd()
    }
    playedUntil = nil
  }

  private func playToEnd() async {
    while let end = playedUntil, clock.now < end, (try? await clock.sleep(until: end)) != nil {}
  }

  package func note(openRequests count: Int) {
    openRequests = count
    if player.showing == indication { light(indication) }
  }

  /// Whether a press that begins now is accepted.
  package enum Readiness: String, Sendable {
    case counts
    case guardTime = "guard time"
    case nothingShown = "nothing is shown"
  }

  package var readiness: Readiness {
    guard let earliest = armed?.earliest else { return .nothingShown }
    return clock.now < earliest ? .guardTime : .counts
  }

  /// After this time a press or key ends an indication that a server chose and that can take long.
  private static let longestHeld = Duration.seconds(10)

  /// Indicates that a press or key was ignored. An indication that is being played to its end is then repeated, once.
  func reportIgnored() {
    if let playing, clock.now >= playing.beginning + Self.longestHeld { return playing.task.cancel() }
    if let playedUntil, clock.now < playedUntil {
      guard !isPlayedAgain else { return }
      isPlayedAgain = true
      self.playedUntil = clock.now + Indication.ignored.pattern.length + indication.pattern.length
    }
    flash(.ignored)
  }

  /// Whether the LED says what a release of the button would do.
  private var isReleaseShown: Bool { [.releaseToAccept, .releaseToReport].contains(showing) }

  /// The indication on the LED now.
  package var showing: Indication { player.context.indication }

  /// The indication on the LED now, and the number of entries submitted since the panel started.
  package var ledContext: LEDContext { player.context }

  package nonisolated func events(for prompt: Prompt) -> AsyncStream<PanelEvent> {
    let number = armings.add(1, ordering: .relaxed).newValue
    return AsyncStream(bufferingPolicy: .bufferingNewest(64)) { continuation in
      continuation.onTermination = { _ in Task { await self.disarm(number) } }
      Task { await self.arm(prompt, number, continuation) }
    }
  }

  /// Both the arming and the end of a prompt are tasks, and may come in any order.
  private func arm(_ prompt: Prompt, _ number: Int, _ continuation: AsyncStream<PanelEvent>.Continuation) {
    guard number > newest else { return continuation.finish() }
    newest = number
    armed?.continuation.finish()
    forget()
    if mayBeUnseen, buttonTrouble == nil {
      mayBeUnseen = false
      continuation.yield(.lit)
      return continuation.finish()
    }
    let now = clock.now
    armed = Armed(
      number: number, earliest: now + timing.guardTime,
      gestures: GestureRecognizer(for: prompt, timing: timing, armedAt: now, isDown: isDown),
      entry: EntryRecognizer(for: prompt, earliestKey: now + timing.guardTime, idle: settings.idle),
      reportsTyping: prompt.sources.contains(.typing), confirmsLongest: prompt.isConfirmedByVeryLongHold,
      continuation: continuation)
    if let buttonTrouble { continuation.yield(.dark(buttonTrouble)) }
    let typingTrouble = keypad == nil ? "this board has no keypad" : keypadTrouble
    if let typingTrouble, armed?.entry.wantsDigits == true { continuation.yield(.unavailable(typingTrouble)) }
    schedule()
  }

  private func disarm(_ number: Int) {
    newest = max(newest, number)
    guard armed?.number == number else { return }
    forget()
    schedule()
  }

  /// Ends the prompt and wipes the typed digits. The LED returns to the handler's indication.
  private func forget() {
    let isUsed = armed?.entry.isTyping == true || isReleaseShown
    armed = nil
    if isUsed { lightAgain() }
  }

  /// Ends the prompt with the user's gesture or entry.
  func finish(_ event: PanelEvent) {
    armed?.continuation.yield(event)
    armed?.continuation.finish()
    armed = nil
  }

  /// Starts a timer for the next timeout of the recognizers.
  func schedule() {
    timer?.cancel()
    timer = nil
    guard let moment = [armed?.gestures.nextDeadline, armed?.entry.nextDeadline].compactMap({ $0 }).min() else {
      return
    }
    timer = Task {
      guard (try? await clock.sleep(until: moment)) != nil, !Task.isCancelled else { return }
      report(armed?.gestures.time(clock.now) ?? [])
      report(armed?.entry.time(clock.now) ?? [])
      schedule()
    }
  }

  func light(_ indication: Indication, afterDark pause: Duration = .zero, again: Bool = false) {
    flashing?.cancel()
    player.play(indication, openRequests: openRequests, afterDark: pause, again: again)
  }

  /// Ends a panel indication and shows the handler's indication again.
  func lightAgain(afterDark pause: Duration = .zero) {
    light(armed?.entry.isTyping == true ? .entering : indication, afterDark: pause)
  }

  /// Shows an indication to its end, unless another one replaces it.
  func flash(_ indication: Indication) {
    light(indication)
    let end = clock.now + indication.pattern.length
    flashing = Task {
      guard (try? await clock.sleep(until: end)) != nil, !Task.isCancelled else { return }
      lightAgain()
    }
  }
}
