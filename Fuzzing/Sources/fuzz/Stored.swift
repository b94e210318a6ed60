// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Glibc
@testable import MQTT
import MobileAuth
import OpenPGP
import ReferenceProtocol
import Secrets

@testable import ApprovalToken
@testable import PINProtection
@testable import OATHAdapter
@testable import PingAMAdapter
@testable import PrivacyIDEAAdapter
@testable import ReferenceAdapter
@testable import ServerBackends
@testable import ServerParsers

/// Parses stored data: the plaintext of encrypted records, database rows, files with secrets, and columns of the token
/// server that contain JSON. In a record, each line is a part; `@` and a letter stand for a valid part.
func readStored(_ bytes: [UInt8]) {
  let input = Input(bytes, choices: 10)
  switch input.choice {
  case 0: readReferenceAccount(account(of: input))
  case 1: _ = try? DeviceCredentials(server(of: input)).encoded()
  case 2: readPushAccount(account(of: input))
  case 3: readMechanism(input)
  case 4: readMessage(input)
  case 5: readOneTimePasswords(input)
  case 6: readPINRecords(input.bytes)
  case 7: readSecretFiles(input.bytes)
  case 8: readColumns(input.bytes)
  default: readRawRecord(input.bytes)
  }
}

private func parts(of input: Input) -> [SecretBytes] {
  input.rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
    goodParts[String(decoding: line, as: UTF8.self)] ?? SecretBytes(copying: Array(line))
  }
}

private let goodParts: [String: SecretBytes] = orTrap {
  let pinParts = AccountPIN(
    try ProtectedToken(
      SecretBytes(copying: [UInt8](repeating: 1, count: 32)),
      under: PIN(digits: SecretBytes(copying: Array("12345".utf8))),
      binding: Keys.shared, parameters: Scrypt.Parameters(cost: 2, blockSize: 1, parallelization: 1))
  ).parts
  return [
    "@k": Keys.token.secret, "@c": SecretBytes(copying: Keys.server.certificate.bytes),
    "@d": try Keys.device.exportedSecret(), "@r": try Keys.pushServer.exportedSecret(),
    "@p": SecretBytes(copying: Keys.pushServer.publicKey.pkcs1), "@s": Keys.shared, "@w": pinParts[1],
  ]
}

private func account(of input: Input, kind: String = "s") -> AccountRecord {
  AccountRecord(
    id: AccountID("ann"), server: TokenServerID(kind), profile: "P", stage: .active, secrets: .joining(parts(of: input))
  )
}

private func server(of input: Input) -> TokenServerRecord {
  TokenServerRecord(id: TokenServerID("s"), kind: "k", url: "https://s", secrets: .joining(parts(of: input)))
}

private func readReferenceAccount(_ record: AccountRecord) {
  guard let credentials = try? AccountCredentials(record) else { return }
  if let pin = credentials.pin { requirePINLength(pin.current.length) }
  let again = try? AccountCredentials(record.with(credentials.encoded()))
  require(again?.codeDigest == credentials.codeDigest, "credentials survive being written")
}

private func readPushAccount(_ record: AccountRecord) {
  guard let credentials = try? PushCredentials(record) else { return }
  requirePINLength(credentials.pinLength)
  let again = (try? credentials.encoded()).flatMap { try? PushCredentials(record.with($0)) }
  require(again?.next?.giveUpAt == credentials.next?.giveUpAt, "credentials survive being written")
}

/// A length that a PIN cannot have would end the process when the PIN is requested.
private func requirePINLength(_ length: Int?) {
  if let length { require(PINPolicy.lengths.contains(length), "a PIN can have \(length) digits") }
}

private func readMechanism(_ input: Input) {
  let record = account(of: input, kind: PingAM.kind)
  _ = try? EndpointCredentials(server(of: input)).encoded
  _ = try? PingAM.pins(of: server(of: input))
  requirePINLength((try? PingAM.pinLength(of: record)).flatMap(\.self))
  for hasPIN in [true, false] {
    _ = (try? PingAM.lock(of: record, hasPIN: hasPIN, isTamperedWith: { !hasPIN })).map { "\(String(describing: $0))" }
  }
  for policy in ["deviceTampering", "biometricAvailable", "x"] {
    _ = try? PingAM.lockedManually(record, with: policy, hasPIN: true, isTamperedWith: { false })
  }
  if let changed = try? PingAM.settingPendingMailbox(mailbox: "m", record) { _ = try? PingAM.pendingMailbox(of: changed) }
}

private let mechanism = Mechanism(
  facts: Mechanism.Metadata(
    uid: "11111111-1111-4111-8111-111111111111", issuer: "AM", accountName: "ann", registrationURL: "https://am/r",
    authenticationURL: "https://am/a", deviceToken: "mailbox"),
  secret: SharedSecret(bytes: Keys.shared))

private func readMessage(_ input: Input) {
  guard let transaction = TransactionID("00000000-0000-4000-8000-000000000001") else { return }
  let delivered = DeliveredMessage(
    transaction: transaction, account: AccountID("ann"), reference: "m", receivedAtMilliseconds: 1_795_253_339_000,
    contents: .joining(parts(of: input)))
  let record = AccountRecord(
    id: AccountID("ann"), server: TokenServerID(PingAM.kind), profile: "P", stage: .active, secrets: mechanism.encoded)
  _ = try? PingAM.summary(of: delivered, for: record, now: 1_795_253_400_000)
}

private func readOneTimePasswords(_ input: Input) {
  let record = AccountRecord(
    id: AccountID("ann"), server: TokenServerID("oath"), profile: "P", stage: .active,
    secrets: SecretBytes(copying: input.bytes))
  let facts = OATHMetadata(record)
  requirePINLength(facts.pinLength)
  _ = (try? facts.lock { false }).map { "\(String(describing: $0))" }
  let again = OATHMetadata(record.with(facts.encoded))
  require(again.isLocked == facts.isLocked && again.policies == facts.policies, "facts survive being written")
}

private func readPINRecords(_ bytes: [UInt8]) {
  let secret = SecretBytes(copying: bytes)
  if let token = try? WrappedToken(encoded: secret) {
    require(SecretBytes.constantTimeEqual(token.encoded, secret), "a wrapped token is written as it was")
  }
  if let keys = try? SealedKeys(encoded: secret) {
    require(SecretBytes.constantTimeEqual(keys.encoded, secret), "sealed keys are written as they were")
  }
}

private func readRawRecord(_ bytes: [UInt8]) {
  let secret = SecretBytes(copying: bytes)
  guard let parts = secret.parts() else { return }
  require(SecretBytes.constantTimeEqual(.joining(parts), secret), "parts are joined as they were")
}

private let directory = orTrap { try ScratchVault.makeDirectory() }

private func readSecretFiles(_ bytes: [UInt8]) {
  let credential = "\(directory)/approval-token.device-secret"
  write(bytes, to: credential)
  readDeviceSecret(from: directory)
  let text = "\(directory)/text"
  write(bytes, to: text)
  let table = "[mqtt]\nbroker = \"b\"\nuser = \"u\"\npassword_file = \"\(text)\"\n"
  guard let settings = orTrap({ try Configuration(parsing: table, file: "config.toml") }).mqtt else { return }
  if let credentials = try? settings.credentials() {
    require(credentials.user == "u", "the user is the configured one")
  }
}

private func write(_ bytes: [UInt8], to path: String) {
  let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
  require(descriptor >= 0 && Glibc.write(descriptor, bytes, bytes.count) == bytes.count, "\(path) can be written")
  close(descriptor)
}

private func readColumns(_ bytes: [UInt8]) {
  _ = try? JSON.decode(DeviceEvent.self, from: bytes).hint
  _ = try? JSON.decode(ApprovalCapabilities.self, from: bytes)
  var transaction = Transaction(
    id: "t", userID: UserID("ann"), clientID: ClientID("C"), profileID: ProfileID("P"), type: "login", method: .pushWithPIN,
    callbackURI: "https://p/", message: nil, nonce: [UInt8](repeating: 7, count: 32).base64URL, request: bytes,
    callbackOnExpiry: false, createdAtMs: 0, expiresAtMs: 60_000)
  transaction.pinAttempts = 1_000_000_000
  guard let reissued = try? transaction.reissued(counts: ProfileFailureCounts(profileID: "P", max: 3, previous: 1))
  else { return }
  require(reissued.request == bytes || reissued.wasIssued(SHA256.hash(bytes)), "an earlier wording is known")
}
