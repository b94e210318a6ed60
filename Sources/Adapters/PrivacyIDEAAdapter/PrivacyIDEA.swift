// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// Functions on accounts with a push token of privacyIDEA or eduMFA.
package enum PrivacyIDEA {
  /// The `kind` of `TokenServerRecord` for these servers.
  package static let kind = "privacyidea"

  /// Whether the text has the scheme and host of an enrollment URL of such a server.
  package static func recognizes(_ text: String) -> Bool {
    do {
      _ = try EnrollmentURI(text)
      return true
    } catch { return error != .notAnEnrollment }
  }

  /// The number of digits of the PIN that the user types before each approval; nil if no PIN is required.
  package static func pinLength(of record: AccountRecord) throws(StateStoreError) -> Int? {
    try PushCredentials(record).pinLength
  }

  /// Returns the account with the length of its PIN, which the state store has, and with the PIN required before each
  /// approval.
  package static func with(pinLength: Int, _ record: AccountRecord) throws -> AccountRecord {
    var credentials = try PushCredentials(record)
    guard credentials.active != nil else { throw StateStoreError.notFound(.keys(of: record.id)) }
    credentials.pinLength = pinLength
    credentials.active?.wantsPIN = true
    return record.with(try credentials.encoded())
  }

  /// The certificate pins stored for the endpoint at enrollment.
  package static func pins(of record: TokenServerRecord) throws(StateStoreError) -> [String] {
    try EndpointCredentials(record).pins
  }
}
