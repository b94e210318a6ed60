public import MobileAuth
public import Secrets

/// Turns keys and the passing of time into an entry or a cancellation, for one prompt. Pure: it knows no clock and no
/// hardware. It decides by the kinds of keys and by how many digits there are, never by a digit.
public struct EntryRecogniser: ~Copyable {
  public enum Finding: Sendable, Equatable {
    /// A key within the guard time: it counts for nothing.
    case tooEarly
    /// A key that means something here, whatever it did.
    case keyed
    /// The first digit.
    case touched
    /// Nothing is typed any more.
    case released
    /// Enter, but not the number of digits that is wanted; they are gone.
    case wrongLength
    case entered(PIN)
    /// Escape, twice.
    case cancelled

    /// Whether Enter submitted what was typed, whatever it was.
    var isSubmission: Bool {
      switch self {
      case .wrongLength, .entered: true
      case .tooEarly, .keyed, .touched, .released, .cancelled: false
      }
    }
  }

  private let prompt: Prompt
  private let idle: Duration
  private let earliestKey: Moment
  private var typed = TypedDigits()
  private var escaped = false
  private var lastKey: Moment

  /// - Parameters:
  ///   - earliestKey: the end of the guard time; what is pressed before counts for nothing.
  ///   - idle: after so long without a key, what was typed is wiped.
  public init(for prompt: Prompt, earliestKey: Moment, idle: Duration) {
    self.prompt = prompt
    self.earliestKey = earliestKey
    self.idle = idle
    lastKey = earliestKey
  }

  public var isTyping: Bool { typed.count > 0 }

  public var wantsDigits: Bool { if case .digits = prompt { true } else { false } }

  /// When `time(_:)` has something to say even if no key comes.
  public var nextMoment: Moment? { isTyping || escaped ? lastKey + idle : nil }

  /// - Parameter digits: where the digit waits if the key was one; it is taken in any case.
  public mutating func key(_ kind: KeyKind, at moment: Moment, digits: DigitQueue) -> [Finding] {
    var findings = time(moment)
    guard moment >= earliestKey, isMeaningful(kind) else {
      if kind == .digit { digits.discard() }
      if moment < earliestKey, isMeaningful(kind) { findings.append(.tooEarly) }
      return findings
    }
    findings.append(.keyed)
    lastKey = moment
    let isSecondEscape = kind == .escape && escaped
    escaped = false
    switch kind {
    case .digit:
      if !isTyping { findings.append(.touched) }
      digits.move(to: &typed)
    case .delete:
      let wasTyping = isTyping
      typed.deleteLast()
      if wasTyping, !isTyping { findings.append(.released) }
    case .clear: findings += wipe()
    case .escape:
      findings += isSecondEscape ? [.cancelled] : wipe()
      escaped = true
    case .enter: findings += submit()
    case .other: break
    }
    return findings
  }

  /// Tells what the passing of time alone has brought about.
  public mutating func time(_ now: Moment) -> [Finding] {
    guard let nextMoment, now >= nextMoment else { return [] }
    return wipe()
  }

  /// Forgets what was typed.
  public mutating func wipe() -> [Finding] {
    escaped = false
    guard isTyping else { return [] }
    typed.clear()
    return [.released]
  }

  private func isMeaningful(_ kind: KeyKind) -> Bool {
    switch (prompt, kind) {
    case (.digits, .digit), (.digits, .enter), (.digits, .delete), (.digits, .clear): true
    case (.digits, .escape), (.confirmation, .escape), (.denial, .escape), (.veryLongHold, .escape): true
    default: false
    }
  }

  private mutating func submit() -> [Finding] {
    guard case .digits(let count) = prompt else { return [] }
    let pin = typed.pin(count: count)
    let released = wipe()
    return pin.map { [.entered($0)] } ?? released + [.wrongLength]
  }
}
