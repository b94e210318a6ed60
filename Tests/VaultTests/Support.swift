// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import MobileAuth
import SQLite
import Secrets
import Testing
import Vault

/// A temporary directory for one test, deleted with its contents when the test releases it.
final class VaultFixture: Sendable {
  let path: String

  /// - Parameter base: the parent directory. A memory file system speeds up tests that need thousands of directories.
  init(in base: String = "/tmp") throws {
    var template = Array("\(base)/vault-tests-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw StateStoreError.io(call: "mkdtemp", reason: base) }
    path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  deinit {
    for name in names(in: path) { unlink("\(path)/\(name)") }
    rmdir(path)
  }

  var database: String { "\(path)/vault.sqlite3" }

  func deviceSecret() throws -> DeviceSecret {
    try DeviceSecret.load(stateDirectory: path, credentialsDirectory: nil)
  }

  /// - Parameter hourlyLimit: unlimited by default, so that long runs at one time are recorded completely.
  func vault(auditCapacity: Int64 = 10_000, hourlyLimit: Int64 = .max) throws -> Vault {
    try Vault.open(
      directory: path, deviceSecret: try deviceSecret(), auditCapacity: auditCapacity, hourlyLimit: hourlyLimit)
  }

  /// The vault file as seen by an attacker who has the SD card but not the device secret.
  func raw<Result>(_ body: (borrowing Connection) throws -> Result) throws -> Result {
    let connection = try Connection(path: database)
    return try body(connection)
  }
}

func names(in directory: String) -> [String] {
  guard let stream = opendir(directory) else { return [] }
  defer { closedir(stream) }
  var names: [String] = []
  while let entry = readdir(stream) {
    let name = withUnsafePointer(to: &entry.pointee.d_name) {
      $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
    if name != ".", name != ".." { names.append(name) }
  }
  return names.sorted()
}

func contents(of path: String) throws -> [UInt8] {
  let descriptor = open(path, O_RDONLY)
  guard descriptor >= 0 else { throw StateStoreError.io(call: "open", reason: path) }
  defer { close(descriptor) }
  var bytes: [UInt8] = []
  var chunk = [UInt8](repeating: 0, count: 65_536)
  while case let count = read(descriptor, &chunk, chunk.count), count > 0 { bytes += chunk[..<count] }
  return bytes
}

func write(_ bytes: [UInt8], to path: String, mode: mode_t = 0o600) throws {
  let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
  guard descriptor >= 0 else { throw StateStoreError.io(call: "create", reason: path) }
  defer { close(descriptor) }
  guard write(descriptor, bytes, bytes.count) == bytes.count, fchmod(descriptor, mode) == 0 else {
    throw StateStoreError.io(call: "write", reason: path)
  }
}

func permissions(of path: String) -> mode_t {
  var status = stat()
  return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
}

let alice = AccountID("alice")
let bob = AccountID("bob")
let acme = TokenServerID("acme")
let umbrella = TokenServerID("umbrella")
let login = TransactionID("11111111-2222-4333-8444-555555555555")!
let payment = TransactionID("99999999-2222-4333-8444-555555555555")!

func secrets(_ text: String) -> SecretBytes { SecretBytes(copying: Array(text.utf8)) }

func server(_ id: TokenServerID, url: String = "https://tokens.example", _ text: String = "server key")
  -> TokenServerRecord
{
  TokenServerRecord(id: id, kind: "reference", url: url, secrets: secrets(text))
}

func account(
  _ id: AccountID, at server: TokenServerID = acme, stage: EnrollmentStage = .active, _ text: String = "account key"
) -> AccountRecord {
  AccountRecord(id: id, server: server, profile: "profile of \(id)", stage: stage, secrets: secrets(text))
}

func entry(_ kind: AuditEntry.Kind, _ account: AccountID? = nil, _ detail: String = "") -> AuditEntry {
  AuditEntry(kind, account: account, detail: detail, wallClockMilliseconds: 1_760_000_000_123)
}

func intent(_ transaction: TransactionID, _ account: AccountID, at server: TokenServerID = acme, key: String = "key")
  -> AnswerIntent
{
  AnswerIntent(
    transaction: transaction, server: server, account: account, idempotencyKey: key, decision: .deny(.notMe))
}

extension Vault {
  /// The newest entries, oldest first, without those that cannot be read.
  func auditLines(newest limit: Int) throws -> [AuditLine] { try auditRows(newest: limit).compactMap(\.line) }
}
