public import MobileAuth

/// The panel of a board: one button, one LED, perhaps a keypad. `run()` drains button and keypad for as long as the
/// panel lives, so that a stray press is taken and forgotten before a prompt is armed.
public actor FrontPanel: Panel {
  /// One prompt, as long as it is the current one. Its end wipes what was typed.
  struct Armed: ~Copyable {
    let number: Int
    /// The end of the guard time; what begins before counts for nothing.
    let earliest: Moment
    var gestures: GestureRecogniser
    var entry: EntryRecogniser
    var isButtonTouched = false
    var isTouchTold = false
    let continuation: AsyncStream<PanelEvent>.Continuation

    /// A request is pinned while a finger is on the button or something has been typed.
    mutating func tellTouch() {
      let isTouched = isButtonTouched || entry.isTyping
      if isTouchTold != isTouched { continuation.yield(isTouched ? .touched : .released) }
      isTouchTold = isTouched
    }
  }

  private let button: any Button
  let keypad: (any Keypad)?
  let player: LEDPlayer
  let sounder: (any Sounder)?
  let timekeeper: any Timekeeper
  private let timing: GestureTiming
  let settings: EntrySettings

  var isDown = false
  /// Why the button cannot be read now. Nothing can be approved then, by typing neither: the LED is as blind.
  var buttonTrouble: String? { didSet { if buttonTrouble != oldValue { troublesChanging.yield() } } }
  /// Why nobody can type now.
  var keypadTrouble: String? { didSet { if keypadTrouble != oldValue { troublesChanging.yield() } } }
  /// Yields when `troubles` may have changed. For one consumer.
  public nonisolated let troubleChanges: AsyncStream<Void>
  private let troublesChanging: AsyncStream<Void>.Continuation
  var armed: Armed?
  private var armings = 0
  private var timer: Task<Void, Never>?
  /// What the handler wants shown; a hand on the panel shows something else meanwhile.
  private var indication = Indication.disconnected
  /// How many requests are open, as far as that matters to the one that is shown.
  private var openRequests = 0
  /// What is shown is played to its end, until then.
  private var playedUntil: Moment?
  private var isPlayedAgain = false
  private var flashing: Task<Void, Never>?
  var sounding: Task<Void, Never>?
  var soundings = 0

  public init(
    button: any Button, indicator: any Indicator, sounder: (any Sounder)? = nil, keypad: (any Keypad)? = nil,
    timekeeper: any Timekeeper, timing: GestureTiming = GestureTiming(), entry: EntrySettings = EntrySettings()
  ) {
    self.button = button
    self.keypad = keypad
    self.sounder = sounder
    (troubleChanges, troublesChanging) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    player = LEDPlayer(indicator: indicator, timekeeper: timekeeper)
    self.timekeeper = timekeeper
    self.timing = timing
    settings = entry
  }

  /// Runs until the task is cancelled; the LED is dark and nothing is typed afterwards.
  public func run() async {
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

  public nonisolated var canType: Bool { keypad != nil }

  /// How many events of the keypad the panel has taken since it began.
  public internal(set) var keypadEvents = 0
  /// How many of them submitted digits, the right number of them or not.
  var entries = 0

  /// What is wrong with the button and the keypad now, for people; empty if all is well.
  public var troubles: [String] { [buttonTrouble, keypadTrouble].compactMap(\.self) }

  public func show(_ indication: Indication) async {
    let isNew = self.indication != indication
    if isNew { sound(indication) }
    self.indication = indication
    light(indication)
    // A confirmation is seen to its end, whoever is next; so is that a request failed.
    let isPlayed =
      switch indication {
      case .confirmed, .denied, .pinWrong, .pinRefused, .noSuchChoice, .option, .code, .anotherRequest: true
      case .misconfigured: isNew
      default: false
      }
    guard isPlayed else { return playedUntil = nil }
    isPlayedAgain = false
    playedUntil = timekeeper.now + indication.pattern.length
    while let end = playedUntil, timekeeper.now < end, (try? await timekeeper.sleep(until: end)) != nil {}
    playedUntil = nil
  }

  public func note(openRequests count: Int) {
    openRequests = count
    if player.showing == indication { light(indication) }
  }

  /// Whether a press that begins now counts.
  public enum Readiness: String, Sendable {
    case counts
    case guardTime = "guard time"
    case nothingShown = "nothing is shown"
  }

  public var readiness: Readiness {
    guard let earliest = armed?.earliest else { return .nothingShown }
    return timekeeper.now < earliest ? .guardTime : .counts
  }

  /// Says that a press or key counted for nothing. What is being played to its end is played again after that, once.
  func sayIgnored() {
    if let playedUntil, timekeeper.now < playedUntil {
      guard !isPlayedAgain else { return }
      isPlayedAgain = true
      self.playedUntil = timekeeper.now + Indication.ignored.pattern.length + indication.pattern.length
    }
    flash(.ignored)
  }

  /// What the LED says now.
  public var showing: Indication { player.showing ?? .disconnected }

  /// What the LED says now, and how many entries were submitted before that since the panel began.
  public var showingAfterEntries: (indication: Indication, entries: Int) { (showing, entries) }

  public nonisolated func events(for prompt: Prompt) -> AsyncStream<PanelEvent> {
    AsyncStream(bufferingPolicy: .bufferingNewest(64)) { continuation in
      Task { await self.arm(prompt, continuation) }
    }
  }

  private func arm(_ prompt: Prompt, _ continuation: AsyncStream<PanelEvent>.Continuation) {
    armed?.continuation.finish()
    forget()
    armings += 1
    let (number, now) = (armings, timekeeper.now)
    armed = Armed(
      number: number, earliest: now + timing.guardTime,
      gestures: GestureRecogniser(for: prompt, timing: timing, armedAt: now, isDown: isDown),
      entry: EntryRecogniser(for: prompt, earliestKey: now + timing.guardTime, idle: settings.idle),
      continuation: continuation)
    continuation.onTermination = { _ in Task { await self.disarm(number) } }
    if let buttonTrouble { continuation.yield(.unavailable(buttonTrouble)) }
    let typingTrouble = keypad == nil ? "this board has no keypad" : keypadTrouble
    if let typingTrouble, armed?.entry.wantsDigits == true { continuation.yield(.unavailable(typingTrouble)) }
    schedule()
  }

  private func disarm(_ number: Int) {
    guard armed?.number == number else { return }
    forget()
    schedule()
  }

  /// Wipes what was typed, and the LED no longer says that something is.
  private func forget() {
    let wasTyping = armed?.entry.isTyping == true
    armed = nil
    if wasTyping { lightAgain() }
  }

  /// Ends the prompt with what a person did.
  func finish(_ event: PanelEvent) {
    armed?.continuation.yield(event)
    armed?.continuation.finish()
    armed = nil
  }

  /// Wakes the recognisers when time alone changes something.
  func schedule() {
    timer?.cancel()
    timer = nil
    guard let moment = [armed?.gestures.nextMoment, armed?.entry.nextMoment].compactMap({ $0 }).min() else { return }
    timer = Task {
      guard (try? await timekeeper.sleep(until: moment)) != nil, !Task.isCancelled else { return }
      report(armed?.gestures.time(timekeeper.now) ?? [])
      report(armed?.entry.time(timekeeper.now) ?? [])
      schedule()
    }
  }

  func light(_ indication: Indication, afterDark pause: Duration = .zero) {
    flashing?.cancel()
    player.play(indication, openRequests: openRequests, afterDark: pause)
  }

  /// Whatever a hand has shown is over.
  func lightAgain(afterDark pause: Duration = .zero) {
    light(armed?.entry.isTyping == true ? .entering : indication, afterDark: pause)
  }

  /// Shows something to its end, unless something else is shown first.
  func flash(_ indication: Indication) {
    light(indication)
    let end = timekeeper.now + indication.pattern.length
    flashing = Task {
      guard (try? await timekeeper.sleep(until: end)) != nil, !Task.isCancelled else { return }
      lightAgain()
    }
  }
}
