// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import MobileAuth
import OpenPGP
import PINProtection
import Secrets
import Testing

@testable import ReferenceAdapter

@Suite("Stored credentials", .timeLimit(.minutes(5))) struct StoredCredentialsTests {
  private static let key = try! OpenPGPKey.generate(userID: "A")
  private static let token = try! WrappedToken.wrap(
    SecretBytes(copying: [UInt8](repeating: 1, count: 32)),
    under: PIN(digits: SecretBytes(copying: Array("13579".utf8))), binding: FakeServer.pinBinding,
    parameters: Scrypt.Parameters(cost: 2, blockSize: 1, parallelization: 1))

  private func record(_ parts: [SecretBytes]) -> AccountRecord {
    AccountRecord(
      id: AccountID("A"), server: TokenServerID("s"), profile: "PROFIL", stage: .active, secrets: .joining(parts))
  }

  private func text(_ text: String) -> SecretBytes { SecretBytes(copying: Array(text.utf8)) }

  private func former(_ more: [SecretBytes]) -> AccountRecord {
    record([Self.key.secret, SecretBytes(copying: Self.key.certificate.bytes), text("digest")] + more)
  }

  @Test("A former record without a PIN, with one, and with one that is being changed", arguments: [3, 5, 8])
  func formerRecord(count: Int) throws {
    let pin = [text("5"), Self.token.encoded, text("change"), text("6"), Self.token.encoded]
    let account = try ReferenceBackend.upgraded(former(Array(pin.prefix(count - 3))))
    #expect(account.pin == (count > 3 ? PINMetadata(.server, length: 5) : nil))
    let credentials = try AccountCredentials(account)
    #expect(credentials.codeDigest == Array("digest".utf8))
    #expect(credentials.serverCertificate?.fingerprint == Self.key.certificate.fingerprint)
    #expect(SecretBytes.constantTimeEqual(credentials.key.secret, Self.key.secret))
    #expect(credentials.pin?.current.length == account.pin?.length)
    #expect(credentials.pin?.next?.id == (count == 8 ? "change" : nil))
    #expect(credentials.pin?.next?.token.length == (count == 8 ? 6 : nil))
    #expect(credentials.stored(in: account).isSame(as: account))
  }

  @Test("A former record of another length is damage", arguments: [0, 1, 2, 4, 6, 7, 9])
  func otherLength(count: Int) {
    let parts = [Self.key.secret] + (0..<8).map { _ in text("5") }
    #expect(throws: StateStoreError.corrupt(.keys(of: AccountID("A")))) {
      try AccountCredentials(former: record(Array(parts.prefix(count))))
    }
  }

  /// Without the check, a prompt for the PIN traps.
  @Test("A PIN length that no PIN has is damage", arguments: ["0", "4", "33", "-6", "9223372036854775808", "six", ""])
  func impossiblePINLength(length: String) {
    #expect(throws: StateStoreError.corrupt(.pin(of: AccountID("A")))) {
      try AccountCredentials(former: former([text(length), Self.token.encoded]))
    }
  }

  @Test("Authenticators are stored with the account") func authenticators() throws {
    var account = try ReferenceBackend.upgraded(former([]))
    var credentials = try AccountCredentials(account)
    let token = SecretBytes(copying: [UInt8](repeating: 2, count: 32))
    credentials.authenticators = [
      StoredAuthenticator(identifier: "badge", token: token, registration: nil),
      StoredAuthenticator(identifier: "code", token: token, registration: "00000000-0000-4000-8000-000000000001"),
    ]
    credentials.preferred = "badge"
    account = credentials.stored(in: account)
    let again = try AccountCredentials(account)
    #expect(again.authenticators.map(\.identifier) == ["badge", "code"])
    #expect(again.authenticators.map(\.registration) == [nil, "00000000-0000-4000-8000-000000000001"])
    #expect(again.authenticators.allSatisfy { SecretBytes.constantTimeEqual($0.token, token) })
    #expect(again.preferred == "badge")
  }

  /// An identifier and the ID of a registration become parts of URLs.
  @Test(
    "An authenticator that no server can have registered is damage",
    arguments: [("..", nil, 32), ("a/b", nil, 32), ("", nil, 32), ("a", "../x", 32), ("a", "", 32), ("a", nil, 31)]
      as [(String, String?, Int)])
  func damagedAuthenticator(identifier: String, registration: String?, count: Int) throws {
    let account = try ReferenceBackend.upgraded(former([]))
    var credentials = try AccountCredentials(account)
    let token = SecretBytes(copying: [UInt8](repeating: 2, count: count))
    credentials.authenticators = [
      StoredAuthenticator(identifier: identifier, token: token, registration: registration)
    ]
    #expect(throws: StateStoreError.corrupt(.keys(of: AccountID("A")))) {
      try AccountCredentials(credentials.stored(in: account))
    }
  }

  /// A field of a later version must not make the credentials unreadable.
  @Test("An unknown field is ignored") func unknownField() throws {
    enum Later: UInt16 { case field = 40_000 }
    var account = try ReferenceBackend.upgraded(former([]))
    var fields = try #require(SecretFields(encoded: account.secrets))
    fields.set(Later.field, text: "later")
    account.secrets = fields.encoded
    #expect(try AccountCredentials(account).codeDigest == Array("digest".utf8))
  }

  @Test("The former record of a server is read, and written in the present encoding", arguments: [0, 2])
  func formerServer(pins count: Int) throws {
    let key = try P256PrivateKey()
    let pins = (0..<count).map { "pin \($0)" }
    for clientID in [nil, "client"] {
      var record = TokenServerRecord(
        id: TokenServerID("s"), kind: "reference", url: "https://s",
        secrets: .joining([try key.exportedSecret(), text(clientID ?? "")] + pins.map(text)))
      for _ in 1...2 {
        let credentials = try DeviceCredentials(record)
        #expect(credentials.clientID == clientID && credentials.pins == pins)
        #expect(try SecretBytes.constantTimeEqual(credentials.deviceKey.exportedSecret(), key.exportedSecret()))
        record.secrets = try credentials.encoded()
      }
      #expect(SecretFields.isEncoding(record.secrets))
    }
  }
}
