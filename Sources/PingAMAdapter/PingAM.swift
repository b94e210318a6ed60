// SPDX-License-Identifier: Apache-2.0
public import Courier
import Cryptography
public import MobileAuth
import Secrets

/// Functions on accounts with a push mechanism of PingAM (formerly ForgeRock AM).
public enum PingAM {
  /// The `kind` of `TokenServerRecord` for AM.
  public static let kind = "pingam"

  /// The number of digits of the PIN that replaces the biometric check that AM requests; nil if the account has no PIN.
  public static func pinLength(of record: AccountRecord) throws(CustodyFault) -> Int? {
    try Mechanism(record)?.facts.pinLength
  }

  /// Returns the account with the length of its PIN, which the state store has.
  public static func with(pinLength: Int, _ record: AccountRecord) throws(CustodyFault) -> AccountRecord {
    try changed(record) { $0.pinLength = pinLength }
  }

  /// The mailbox that AM has confirmed; nil for an account without keys.
  public static func mailbox(of record: AccountRecord) throws(CustodyFault) -> String? {
    try Mechanism(record)?.facts.deviceToken
  }

  /// The mailbox that AM has not confirmed yet; nil if no change is pending.
  public static func wantedMailbox(of record: AccountRecord) throws(CustodyFault) -> String? {
    try Mechanism(record)?.facts.wantedDeviceToken
  }

  /// Checks that the AM of each account is reachable and trusted. AM does not report whether it still knows the
  /// accounts.
  public static func reach(_ accounts: [AccountRecord], over courier: any Courier) async throws {
    let urls = Set(try accounts.compactMap { try Mechanism($0)?.facts.authenticationURL })
    for url in urls.sorted() { try await PingAMClient(courier: courier).reach(url) }
  }

  /// The certificate pins stored for the server at enrollment.
  public static func pins(of record: TokenServerRecord) throws(CustodyFault) -> [String] {
    guard let parts = record.secrets.parts() else { throw .damaged("the pins of \(record.id)") }
    return parts.map { $0.withExposedSecret { String(decoding: $0, as: UTF8.self) } }
  }

  /// Returns the account with a mailbox that AM has not confirmed yet.
  public static func wanting(mailbox: String, _ record: AccountRecord) throws(CustodyFault) -> AccountRecord {
    try changed(record) { $0.wantedDeviceToken = mailbox == $0.deviceToken ? nil : mailbox }
  }

  static func changed(
    _ record: AccountRecord, _ body: (inout Mechanism.Facts) -> Void
  ) throws(CustodyFault) -> AccountRecord {
    guard var mechanism = try Mechanism(record) else { throw .unknown("keys of account \(record.id)") }
    body(&mechanism.facts)
    return record.with(mechanism.encoded)
  }

  /// Returns a mailbox name of 128 random bits in hexadecimal.
  public static func makeMailbox() -> String { Random.bytes(16).lowercaseHex }

  /// Derives the transaction ID of a message: a version 8 UUID (RFC 9562 §5.8). A message delivered again, even with
  /// another message ID, has the same transaction ID.
  static func transaction(mechanismUID: String, challenge: [UInt8]) -> TransactionID {
    let hash = SHA256.hash(Array("approval-token/pingam\n\(mechanismUID)\n".utf8) + challenge)
    guard let transaction = TransactionID(derivedUUID(hash)) else { preconditionFailure("not a UUID") }
    return transaction
  }
}
