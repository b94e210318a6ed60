// SPDX-License-Identifier: Apache-2.0
import Secrets

/// The inputs that the user is asked for. The panel listens to all sources at once, and the first complete input ends
/// the prompt. Whether an input answers the request is decided by who asked, not by the panel.
///
/// Readers and other programs are no sources of the panel: they are drivers (`AuthenticatorDriver`), which are asked
/// beside a prompt (`Panel.events(for:asking:in:)`).
package struct Prompt: Sendable, Equatable {
  package enum Source: Sendable, Hashable {
    /// A gesture at the buttons, or the keypad's cancel key.
    case gesture(Gesture.Kind)
    /// Exactly `count` digits on the keypad, then Enter. A prompt with several of these takes any number of digits from
    /// the smallest to the largest.
    case digits(count: Int)
    /// 1 to `PIN.longest` digits on the keypad, then Enter.
    case code
    /// Enter without digits.
    case enterAlone
    /// That digits are being typed: no input by itself.
    case typing
  }

  /// Inputs of other sources are ignored.
  package let sources: Set<Source>
  /// Whether a very long hold confirms what is asked. In every other prompt it denies and reports.
  package let isConfirmedByVeryLongHold: Bool

  /// A prompt for inputs of these sources. Every prompt can also be denied.
  package init(_ sources: Set<Source>) { self.init(sources, isConfirmedByVeryLongHold: false) }

  private init(_ sources: Set<Source>, isConfirmedByVeryLongHold: Bool) {
    self.sources = sources.union(Self.denials)
    self.isConfirmedByVeryLongHold = isConfirmedByVeryLongHold
  }

  private static let denials: Set<Source> = [
    .gesture(.doublePress), .gesture(.denyButton), .gesture(.veryLongHold), .gesture(.cancelKeys),
  ]

  /// Hold to approve, press twice to deny, hold very long to deny and report; the keypad's cancel key also denies.
  package static let confirmation = Prompt([.gesture(.hold)])
  /// Type exactly `count` digits, then Enter. Denying works as for a confirmation; a hold that would approve one is
  /// ignored.
  package static func digits(count: Int) -> Prompt { digits(counts: count...count) }
  /// The same, for any of these numbers of digits.
  package static func digits(counts: ClosedRange<Int>) -> Prompt {
    Prompt(Set(counts.map { Source.digits(count: $0) }))
  }
  /// Type a code of any length, then Enter; or Enter alone, for the PIN instead. Denying works as for a confirmation.
  package static func code(orEnterAlone: Bool) -> Prompt { Prompt(orEnterAlone ? [.code, .enterAlone] : [.code]) }
  /// Use an authenticator outside of the panel, or type the PIN instead. Denying works as for a confirmation.
  /// - Parameters:
  ///   - pinLength: the number of digits of the PIN; nil if it cannot be used.
  ///   - hold: whether the button must be held before the authenticator is asked.
  package static func authenticator(orPINOf pinLength: Int?, hold: Bool) -> Prompt {
    var sources: Set<Source> = hold ? [.gesture(.hold)] : []
    if let pinLength { sources.formUnion([.digits(count: pinLength), .typing]) }
    return Prompt(sources)
  }
  /// Denying works as for a confirmation; approval is impossible.
  package static let denial = Prompt([])
  /// A very long hold confirms an irreversible action; a double press and the keypad's cancel key abort it. The panel
  /// listens as for `denial`, but its LED says that a release accepts; who asked gives the gestures this meaning.
  package static let veryLongHold = Prompt([], isConfirmedByVeryLongHold: true)

  /// The gestures that count.
  package var gestures: Set<Gesture.Kind> {
    Set(sources.compactMap { if case .gesture(let kind) = $0 { kind } else { nil } })
  }

  /// The numbers of digits that may be typed; nil if digits are ignored.
  package var digitCounts: ClosedRange<Int>? {
    if sources.contains(.code) { return 1...PIN.longest }
    guard let shortest = counts.min(), let longest = counts.max() else { return nil }
    return shortest...longest
  }

  /// The exact number of digits to type; nil if none is set. The smallest, if there are several.
  package var digitCount: Int? { counts.min() }

  private var counts: [Int] { sources.compactMap { if case .digits(let count) = $0 { count } else { nil } } }
}
