// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import Glibc
import MobileAuth
import OpenPGP
import ReferenceProtocol
import Secrets

@testable import MQTT
@testable import OATHAdapter
@testable import PINProtection
@testable import PingAMAdapter
@testable import PrivacyIDEAAdapter
@testable import ReferenceAdapter
@testable import ServerBackends
@testable import ServerParsers
@testable import TokenDaemon

/// Parses stored data: the plaintext of encrypted records, database rows, files with secrets, and columns of the token
/// server that contain JSON. In a former record, each line is a part; in a present one, the first line is the length of
/// the PIN, and each other line a field with the next tag. `@` and a letter stand for a valid part.
func readStored(_ bytes: [UInt8]) {
  let input = Input(bytes, choices: 14)
  switch input.choice {
  case 0: upgrade(account(of: input), by: ReferenceBackend.self).map(readReferenceAccount)
  case 1: _ = try? DeviceCredentials(server(of: input)).encoded()
  case 2: upgrade(account(of: input), by: PrivacyIDEABackend.self).map(readPushAccount)
  case 3: readServerPins(input)
  case 4: readMessage(input)
  case 5: readOneTimePasswords(input)
  case 6: readPINRecords(input.bytes)
  case 7: readSecretFiles(input.bytes)
  case 8: readColumns(input.bytes)
  case 9: readRawRecord(input.bytes)
  case 10: readBox(input.bytes)
  case 11: readReferenceAccount(tagged(input))
  case 12: readPushAccount(tagged(input))
  default: readMechanism(tagged(input))
  }
}

private func parts(of input: Input) -> [SecretBytes] {
  input.rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
    goodParts[String(decoding: line, as: UTF8.self)] ?? SecretBytes(copying: Array(line))
  }
}

private let goodParts: [String: SecretBytes] = orTrap {
  let token = try ProtectedToken(
    SecretBytes(copying: [UInt8](repeating: 1, count: 32)),
    under: PIN(digits: SecretBytes(copying: Array("12345".utf8))),
    binding: Keys.shared, parameters: Scrypt.Parameters(cost: 2, blockSize: 1, parallelization: 1))
  return [
    "@k": Keys.token.secret, "@c": SecretBytes(copying: Keys.server.certificate.bytes),
    "@d": try Keys.device.exportedSecret(), "@r": try Keys.pushServer.exportedSecret(),
    "@p": SecretBytes(copying: Keys.pushServer.publicKey.pkcs1), "@s": Keys.shared, "@w": token.wrapped.encoded,
    "@a": .joining([
      StoredAuthenticator(
        identifier: "a", token: SecretBytes(copying: [UInt8](repeating: 2, count: 32)), registration: nil
      ).encoded
    ]),
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

private struct Tag: RawRepresentable { let rawValue: UInt16 }

/// An account of the present format.
private func tagged(_ input: Input) -> AccountRecord {
  var (lines, fields) = (parts(of: input), SecretFields())
  let length = lines.removeFirst().withExposedSecret { Int(String(decoding: $0, as: UTF8.self)) }
  for (line, tag) in zip(lines, UInt16(1)...64) where line.count > 0 { fields[Tag(rawValue: tag)] = line }
  var account = account(of: input).with(fields.encoded)
  account.pin = length.map { PINMetadata(.token, length: $0) }
  account.policies = length.map { _ in #"{"deviceTampering":{"score":0.5}}"# }
  account.delivery = DeliveryAddress("mailbox")
  return account
}

/// An account of a former format is decoded, or is damaged.
private func upgrade(_ former: AccountRecord, by backend: any FormerAccounts.Type) -> AccountRecord? {
  guard let account = try? backend.upgraded(former) else { return nil }
  requirePINLength(account.pin?.length)
  return account
}

private func readReferenceAccount(_ record: AccountRecord) {
  guard let credentials = try? AccountCredentials(record) else { return }
  requirePINLength(credentials.pin?.current.length)
  requirePINLength(credentials.pin?.next?.token.length)
  let stored = credentials.stored(in: record)
  let again = try? AccountCredentials(stored)
  require(again?.stored(in: stored).isSame(as: stored) == true, "credentials survive being written")
}

private func readPushAccount(_ record: AccountRecord) {
  guard let credentials = try? PushCredentials(record), let stored = try? credentials.stored(in: record) else { return }
  let again = try? PushCredentials(stored).stored(in: stored)
  require(again?.isSame(as: stored) == true, "credentials survive being written")
}

/// A length that a PIN cannot have would end the process when the PIN is requested.
private func requirePINLength(_ length: Int?) {
  if let length { require(PINPolicy.lengths.contains(length), "a PIN can have \(length) digits") }
}

private func readServerPins(_ input: Input) {
  guard let account = upgrade(account(of: input, kind: PingAM.kind), by: PingAMBackend.self) else {
    let record = server(of: input)
    guard let pins = try? CertificatePins(record) else { return }
    let again = TokenServerRecord(id: record.id, kind: record.kind, url: record.url, secrets: pins.encoded)
    return require((try? CertificatePins(again))?.pins == pins.pins, "pins survive being written")
  }
  readMechanism(account)
  lockAndUnlock(account, isRequired: true)
  if let changed = try? account.requesting(mailbox: "m") {
    require(changed.delivery?.wanted ?? changed.delivery?.mailbox == "m", "the mailbox is wanted")
  }
}

private func readMechanism(_ record: AccountRecord) {
  guard let mechanism = try? Mechanism(record) else { return }
  let stored = mechanism.stored(in: record)
  let again = (try? Mechanism(stored))?.stored(in: stored)
  require(again?.isSame(as: stored) == true, "a mechanism survives being written")
}

private func lockAndUnlock(_ account: AccountRecord, isRequired: Bool) {
  for isTamperedWith in [true, false] {
    let conditions = PolicyConditions(hasPIN: account.pin != nil, isTamperedWith: { isTamperedWith })
    _ = (try? account.currentLock(conditions)).map { "\(String(describing: $0))" }
    for policy in [nil, "deviceTampering", "biometricAvailable", "x"] {
      guard let locked = try? account.locked(with: policy, isRequired: isRequired, conditions) else { continue }
      require((try? locked.currentLock(conditions)) == .manual(policy: policy), "a lock locks")
      require((try? locked.unlocked(conditions))?.isSame(as: account) == true, "unlocking restores the account")
    }
  }
}

private let mechanism = Mechanism(
  metadata: Mechanism.Metadata(
    uid: "11111111-1111-4111-8111-111111111111", issuer: "AM", accountName: "ann", registrationURL: "https://am/r",
    authenticationURL: "https://am/a", deviceToken: "mailbox"),
  secret: SharedSecret(bytes: Keys.shared))

private func readMessage(_ input: Input) {
  guard let transaction = TransactionID("00000000-0000-4000-8000-000000000001") else { return }
  let delivered = DeliveredMessage(
    transaction: transaction, account: AccountID("ann"), reference: "m", receivedAtMilliseconds: 1_795_253_339_000,
    contents: .joining(parts(of: input)))
  let record = mechanism.stored(
    in: AccountRecord(
      id: AccountID("ann"), server: TokenServerID(PingAM.kind), profile: "P", stage: .active,
      secrets: SecretBytes(copying: [])))
  _ = try? PingAM.summary(of: delivered, for: record, now: 1_795_253_400_000)
}

private func readOneTimePasswords(_ input: Input) {
  let former = AccountRecord(
    id: AccountID("ann"), server: TokenServerID("oath"), profile: "P", stage: .active,
    secrets: SecretBytes(copying: input.bytes))
  if let account = upgrade(former, by: OATHBackend.self) { lockAndUnlock(account, isRequired: false) }
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
  let table = "[mqtt]\nbroker = \"b\"\nusername = \"u\"\npassword_file = \"\(text)\"\n"
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
    id: "t", userID: UserID("ann"), clientID: ClientID("C"), profileID: ProfileID("P"), type: "login",
    method: .pushWithPIN,
    callbackURI: "https://p/", message: nil, nonce: [UInt8](repeating: 7, count: 32).base64URL, request: bytes,
    callbackOnExpiry: false, createdAt: Timestamp(0), expiresAt: Timestamp(60_000))
  transaction.pinAttempts = 1_000_000_000
  guard let reissued = try? transaction.reissued(counts: ProfileFailureCounts(profileID: "P", max: 3, previous: 1))
  else { return }
  require(reissued.request == bytes || reissued.wasIssued(SHA256.hash(bytes)), "an earlier wording is known")
}
