// SPDX-License-Identifier: Apache-2.0
import Secrets

/// The question which option the portal shows. Only the user who started the login knows the answer.
package struct ChoiceChallenge: Sendable, Equatable {
  /// 2 to 10 options, in the server's order.
  package let options: [String]
  /// The count of wrong choices; when none is left, the request is denied.
  package let counts: FailureCounts
  /// The account's PIN, typed after the choice; nil if none is required.
  package let pin: PINChallenge?
  /// The number of entries matching no option after which this token ends the request; nil for no limit.
  package let maxInvalidEntries: Int?

  /// - Returns: nil unless there are 2 to 10 different options.
  package init?(options: [String], counts: FailureCounts, pin: PINChallenge? = nil, maxInvalidEntries: Int? = nil) {
    guard (2...10).contains(options.count), Set(options).count == options.count else { return nil }
    self.options = options
    self.counts = counts
    self.pin = pin
    self.maxInvalidEntries = maxInvalidEntries
  }

  /// Whether all options are numbers of 1 to 4 digits, which the user types as they are shown, with leading zeros;
  /// otherwise the user types an option's position.
  private var areNumbers: Bool {
    options.allSatisfy { (1...4).contains($0.utf8.count) && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }
  }

  /// The numbers of digits that may be typed before Enter.
  package var digitCounts: ClosedRange<Int> {
    let lengths = keys.map(\.utf8.count)
    return (lengths.min() ?? 1)...(lengths.max() ?? 1)
  }

  /// The digits to type for each option, in order: the number itself, or its position from 1, where the tenth is 0.
  package var keys: [String] {
    areNumbers ? options : options.indices.map { "\(($0 + 1) % 10)" }
  }

  /// The keys and options for display, such as "1 dark blue, 2 green".
  package var explanation: String {
    areNumbers
      ? options.joined(separator: ", ") : zip(keys, options).map { "\($0) \($1)" }.joined(separator: ", ")
  }

  /// Returns the option for the typed digits; nil if there is none.
  /// - Parameter digits: the digits as typed. The portal displays them, so they are not secret.
  func option(typed digits: EnteredDigits) -> String? {
    let typed = digits.bytes.withExposedSecret { String(decoding: $0, as: UTF8.self) }
    return keys.firstIndex(of: typed).map { options[$0] }
  }
}

/// A code that the user types into the portal to complete a login that this token has approved.
package struct PortalCode: Sendable, Equatable {
  /// ASCII digits, 1 to 8.
  package let digits: String
  /// The portal administrator's text about the code.
  package let message: String

  /// - Returns: nil unless `digits` is 1 to 8 ASCII digits.
  package init?(digits: String, message: String) {
    guard (1...8).contains(digits.utf8.count), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      return nil
    }
    self.digits = digits
    self.message = message
  }
}
