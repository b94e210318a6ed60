// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import Secrets

/// A state machine that turns keys and elapsed time into an entry or a cancellation, for one prompt. Pure: it uses no
/// clock and no hardware. Its control flow depends on the kinds of keys and the number of digits, never on the value of
/// a digit.
package struct EntryRecognizer: ~Copyable {
  package enum Event: Sendable, Equatable {
    /// A key within the guard time. It is ignored.
    case tooEarly
    /// A key that the prompt accepts, whatever its effect.
    case keyed
    /// The first digit.
    case touched
    /// No digits are left in the entry.
    case released
    /// Enter with a wrong number of digits. The digits are wiped.
    case wrongLength
    case entered(EnteredDigits)
    /// Enter without digits, in a prompt that takes it.
    case enteredNothing
    /// Escape, twice.
    case canceled

    /// Whether Enter submitted the typed digits, valid or not.
    var isSubmission: Bool {
      switch self {
      case .wrongLength, .entered, .enteredNothing: true
      case .tooEarly, .keyed, .touched, .released, .canceled: false
      }
    }
  }

  /// The numbers of digits that may be typed; nil if digits are ignored.
  private let digitCounts: ClosedRange<Int>?
  private let takesEnterAlone: Bool
  private let idle: Duration
  private let earliestKey: MonotonicInstant
  private var typed = TypedDigits()
  private var escaped = false
  private var lastKey: MonotonicInstant

  /// - Parameters:
  ///   - earliestKey: the end of the guard time. Earlier keys are ignored.
  ///   - idle: how long no key may be pressed before the typed digits are wiped.
  package init(for prompt: Prompt, earliestKey: MonotonicInstant, idle: Duration) {
    digitCounts = prompt.digitCounts
    takesEnterAlone = prompt.sources.contains(.enterAlone)
    self.earliestKey = earliestKey
    self.idle = idle
    lastKey = earliestKey
  }

  package var isTyping: Bool { typed.count > 0 }

  package var wantsDigits: Bool { digitCounts != nil }

  /// The time at which `time(_:)` must be called if no key comes before; nil if no timeout is pending.
  package var nextDeadline: MonotonicInstant? { isTyping || escaped ? lastKey + idle : nil }

  package mutating func key(_ key: KeyPress, at moment: MonotonicInstant) -> [Event] {
    var events = time(moment)
    guard isMeaningful(key) else { return events }
    guard moment >= earliestKey else { return events + [.tooEarly] }
    events.append(.keyed)
    lastKey = moment
    let wasEscaped = escaped
    escaped = false
    switch key {
    case .digit(let digit):
      if !isTyping { events.append(.touched) }
      typed.append(digit)
    case .delete:
      let wasTyping = isTyping
      typed.deleteLast()
      if wasTyping, !isTyping { events.append(.released) }
    case .clear: events += wipe()
    case .escape:
      events += wasEscaped ? [.canceled] : wipe()
      escaped = true
    case .enter: events += submit()
    case .other: break
    }
    return events
  }

  /// Applies the idle timeout. Wipes the entry when it is due.
  package mutating func time(_ now: MonotonicInstant) -> [Event] {
    guard let nextDeadline, now >= nextDeadline else { return [] }
    return wipe()
  }

  /// Wipes the typed digits.
  package mutating func wipe() -> [Event] {
    escaped = false
    guard isTyping else { return [] }
    typed.clear()
    return [.released]
  }

  private func isMeaningful(_ key: KeyPress) -> Bool {
    switch key {
    case .digit, .enter, .delete, .clear: wantsDigits
    // Every prompt can be denied.
    case .escape: true
    case .other: false
    }
  }

  private mutating func submit() -> [Event] {
    guard let digitCounts else { return [] }
    if takesEnterAlone, !isTyping { return [.enteredNothing] }
    let entry = typed.entry(within: digitCounts)
    let released = wipe()
    return entry.map { [.entered($0)] } ?? released + [.wrongLength]
  }
}
