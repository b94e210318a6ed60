// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import HTTP
package import MobileAuth
import Secrets

/// Functions on accounts with a push mechanism of PingAM (formerly ForgeRock AM).
package enum PingAM {
  /// The `kind` of `TokenServerRecord` for AM.
  package static let kind = "pingam"

  /// The number of digits of the PIN that replaces the biometric check that AM requests; nil if the account has no PIN.
  package static func pinLength(of record: AccountRecord) throws(StateStoreError) -> Int? {
    try Mechanism(record)?.metadata.pinLength
  }

  /// Returns the account with the length of its PIN, which the state store has.
  package static func with(pinLength: Int, _ record: AccountRecord) throws(StateStoreError) -> AccountRecord {
    try changed(record) { $0.pinLength = pinLength }
  }

  /// The mailbox that AM has confirmed; nil for an account without keys.
  package static func mailbox(of record: AccountRecord) throws(StateStoreError) -> String? {
    try Mechanism(record)?.metadata.deviceToken
  }

  /// The mailbox that AM has not confirmed yet; nil if no change is pending.
  package static func pendingMailbox(of record: AccountRecord) throws(StateStoreError) -> String? {
    try Mechanism(record)?.metadata.wantedDeviceToken
  }

  /// Checks that the AM of each account is reachable and trusted. AM does not report whether it still knows the
  /// accounts.
  package static func reach(_ accounts: [AccountRecord], over http: any HTTPTransport) async throws {
    let urls = Set(try accounts.compactMap { try Mechanism($0)?.metadata.authenticationURL })
    for url in urls.sorted() { try await PingAMClient(http: http).reach(url) }
  }

  /// The certificate pins stored for the server at enrollment.
  package static func pins(of record: TokenServerRecord) throws(StateStoreError) -> [String] {
    guard let parts = record.secrets.parts() else { throw .corrupt(.certificatePins(of: record.id)) }
    return parts.map { $0.withExposedSecret { String(decoding: $0, as: UTF8.self) } }
  }

  /// Returns the account with a mailbox that AM has not confirmed yet.
  package static func settingPendingMailbox(mailbox: String, _ record: AccountRecord) throws(StateStoreError)
    -> AccountRecord
  {
    try changed(record) { $0.wantedDeviceToken = mailbox == $0.deviceToken ? nil : mailbox }
  }

  static func changed(
    _ record: AccountRecord, _ body: (inout Mechanism.Metadata) -> Void
  ) throws(StateStoreError) -> AccountRecord {
    guard var mechanism = try Mechanism(record) else { throw .notFound(.keys(of: record.id)) }
    body(&mechanism.metadata)
    return record.with(mechanism.encoded)
  }

  /// Returns a mailbox name of 128 random bits in hexadecimal.
  package static func makeMailbox() -> String { Random.bytes(16).lowercaseHex }

  /// Derives the transaction ID of a message: a version 8 UUID (RFC 9562 §5.8). A message delivered again, even with
  /// another message ID, has the same transaction ID.
  static func transaction(mechanismUID: String, challenge: [UInt8]) -> TransactionID {
    let hash = SHA256.hash(Array("approval-token/pingam\n\(mechanismUID)\n".utf8) + challenge)
    guard let transaction = TransactionID(derivedUUID(hash)) else { preconditionFailure("not a UUID") }
    return transaction
  }
}
