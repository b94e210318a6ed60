public import Courier
import Cryptography
public import MobileAuth
import Secrets

/// Push mechanisms of PingAM, once ForgeRock AM.
public enum PingAM {
  /// Kind of `TokenServerRecord`.
  public static let kind = "pingam"

  /// Digits of the PIN that a person types where AM wants a fingerprint; nil if the account has none.
  public static func pinLength(of record: AccountRecord) throws(CustodyFault) -> Int? {
    try Mechanism(record)?.facts.pinLength
  }

  /// The account as it is once the vault has a PIN of so many digits for it.
  public static func with(pinLength: Int, _ record: AccountRecord) throws(CustodyFault) -> AccountRecord {
    try changed(record) { $0.pinLength = pinLength }
  }

  /// Where messages for the account are to be brought, as AM was told; nil for one that has lost its keys.
  public static func mailbox(of record: AccountRecord) throws(CustodyFault) -> String? {
    try Mechanism(record)?.facts.deviceToken
  }

  /// Where AM is still to be told to have them brought; nil if it knows.
  public static func wantedMailbox(of record: AccountRecord) throws(CustodyFault) -> String? {
    try Mechanism(record)?.facts.wantedDeviceToken
  }

  /// Returns if the accounts' AM can be reached and is who it should be. Whether it still knows them it does not tell.
  public static func reach(_ accounts: [AccountRecord], over courier: any Courier) async throws {
    let urls = Set(try accounts.compactMap { try Mechanism($0)?.facts.authenticationURL })
    for url in urls.sorted() { try await PingAMClient(courier: courier).reach(url) }
  }

  /// The certificate pins that the server was enrolled with.
  public static func pins(of record: TokenServerRecord) throws(CustodyFault) -> [String] {
    guard let parts = record.secrets.parts() else { throw .damaged("the pins of \(record.id)") }
    return parts.map { $0.withExposedSecret { String(decoding: $0, as: UTF8.self) } }
  }

  /// The account as it is while AM is still to be told of a new mailbox.
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

  /// 128 bits that nobody guesses.
  public static func makeMailbox() -> String { Random.bytes(16).lowercaseHex }

  /// The same message gives the same one, under whatever id it comes: a version 8 UUID (RFC 9562 §5.8).
  static func transaction(mechanismUID: String, challenge: [UInt8]) -> TransactionID {
    let hash = SHA256.hash(Array("approval-token/pingam\n\(mechanismUID)\n".utf8) + challenge)
    guard let transaction = TransactionID(derivedUUID(hash)) else { preconditionFailure("not a UUID") }
    return transaction
  }
}
