// SPDX-License-Identifier: Apache-2.0
/// Settings for typing digits. A board profile may change them within the stated bounds.
package struct EntrySettings: Sendable, Equatable {
  package enum Feedback: String, Sendable, CaseIterable {
    /// The LED shows that digits are typed, not how many.
    case entering
    /// As `entering`, and the LED is also dark for 80 ms at each accepted key, the same for every key. An observer can
    /// count the keys.
    case eachKey = "each-key"
  }

  /// How long no key may be pressed before the typed digits are wiped: 5 to 120 s.
  package var idle = Duration.seconds(30)
  package var feedback = Feedback.entering

  package init() {}
}
