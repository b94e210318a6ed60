// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ArgumentParser
import Glibc
import JSONSchema
import JSONValues
import MobileAuth
import Secrets
import Testing
import Vault

@testable import ApprovalTokenCommands
@testable import OneShotCommands

/// A vault with accounts of each stage.
@Suite(.timeLimit(.minutes(5))) struct AccountsTests {
  private static let server = TokenServerID("auth.example.org")

  private func withAccounts(
    kind: String = "reference", _ accounts: [(String, EnrollmentStage, hasPIN: Bool)],
    _ body: (StateOption) async throws -> Void
  ) async throws {
    var template = Array("/tmp/accounts-tests-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    defer {
      for name in ["vault.sqlite3", "vault.sqlite3-shm", "vault.sqlite3-wal", "device-secret", ""] {
        remove("\(folder)/\(name)")
      }
    }
    let state = try Accounts.parse(["--state", folder]).state
    let vault = try state.openVault(creating: true)
    try vault.put(
      TokenServerRecord(
        id: Self.server, kind: kind, url: "https://auth.example.org", secrets: SecretBytes(copying: [])))
    for (name, stage, hasPIN) in accounts {
      var account = AccountRecord(
        id: AccountID(name), server: Self.server, profile: "P-\(name)", stage: stage,
        secrets: SecretBytes(copying: [1]))
      if hasPIN { account.pin = PINMetadata(.server, length: 5) }
      try vault.put(account)
    }
    try await body(state)
  }

  @Test("An account that approves nothing is listed with what to do, and JSON has the form of its schema")
  func remedies() async throws {
    let lines = [
      "ann  auth.example.org  active",
      "ben  auth.example.org  enrolling  run the same `approval-token enroll` with the same URI or typed code again, "
        + "while it is valid; otherwise `approval-token remove ben`, then enroll with a new one",
      "cyd  auth.example.org  must-enroll-again  `approval-token reenroll cyd`",
      "dan  auth.example.org  must-enroll-again  `approval-token remove dan`, then enroll with a new URI",
    ]
    try await withAccounts([
      ("ann", .active, hasPIN: true), ("ben", .enrolling, hasPIN: false), ("cyd", .mustEnrollAgain, hasPIN: true),
      ("dan", .mustEnrollAgain, hasPIN: false),
    ]) { state in
      let accounts = try Accounts.parse(["--state", state.directory]).list()
      #expect(accounts.map(\.line) == lines)
      let json = String(decoding: JSONMessage.encode(accounts), as: UTF8.self)
      let violations = try JSONSchema(named: "accounts").violations(in: json)
      #expect(violations == [])
    }
  }

  @Test("Doctor reports each account that approves nothing, with what to do") func doctor() async throws {
    try await withAccounts([
      ("ann", .active, hasPIN: true), ("ben", .enrolling, hasPIN: false), ("cyd", .mustEnrollAgain, hasPIN: true),
    ]) { state in
      let result = try Doctor.checkAccounts(try state.openVault(creating: false))
      #expect(result.verdict == .bad && result.subject == "accounts")
      let text =
        "ben is not enrolled completely: run the same `approval-token enroll` with the same URI or typed code again, "
        + "while it is valid; otherwise `approval-token remove ben`, then enroll with a new one; cyd must be enrolled "
        + "again: `approval-token reenroll cyd`"
      #expect(result.text == text)
    }
    try await withAccounts([("ann", .active, hasPIN: true)]) { state in
      let result = try Doctor.checkAccounts(try state.openVault(creating: false))
      #expect(result.verdict == .good)
    }
  }

  /// With the same name, the enrollment with the new URI is refused; with another one, the lost account stays, and with
  /// it the fault.
  @Test("A push token that its server has deleted is removed before a new one is enrolled") func lostPushToken()
    async throws
  {
    try await withAccounts(kind: "privacyidea", [("vpn", .mustEnrollAgain, hasPIN: false)]) { state in
      let result = try Doctor.checkAccounts(try state.openVault(creating: false))
      #expect(result.verdict == .bad)
      #expect(
        result.text == "vpn must be enrolled again: `approval-token remove vpn`, then enroll with a new URI")
    }
  }

  /// AM may know the account: its answer was lost.
  @Test("An account of PingAM that waits for its first message is no fault, unless another one is") func waiting()
    async throws
  {
    let text =
      "work is not enrolled completely: the first login makes it active, if PingAM knows it; otherwise run "
      + "the same `approval-token enroll` again, while the QR code is valid, or `approval-token remove work`, then "
      + "enroll with a new one"
    try await withAccounts(kind: "pingam", [("work", .enrolling, hasPIN: false)]) { state in
      let result = try Doctor.checkAccounts(try state.openVault(creating: false))
      #expect(result.verdict == .note && result.text == text)
    }
    try await withAccounts(
      kind: "pingam", [("home", .mustEnrollAgain, hasPIN: false), ("work", .enrolling, hasPIN: false)]
    ) { state in
      let result = try Doctor.checkAccounts(try state.openVault(creating: false))
      #expect(result.verdict == .bad)
      #expect(
        result.text == "home must be enrolled again: `approval-token remove home`, then enroll with a new URI; \(text)")
    }
  }

  /// What doctor finds, and its exit code.
  private func diagnosis(_ state: StateOption) async throws -> (faults: Set<String>, exit: Int32) {
    let doctor = try Doctor.parse(["--state", state.directory])
    let faults = Set(try await doctor.findings().filter { $0.verdict == .bad }.map(\.subject))
    do { try await doctor.perform() } catch let exit as ExitCode { return (faults, exit.rawValue) }
    return (faults, 0)
  }

  /// The machine may have faults of its own: only what differs from an active account counts. Fails if a token whose
  /// only account can approve nothing is well.
  @Test("An enrollment that was not completed is a fault") func exitCode() async throws {
    try await withAccounts(kind: "oath", [("ben", .enrolling, hasPIN: false)]) { state in
      let ill = try await diagnosis(state)
      let vault = try state.openVault(creating: false)
      var account = try vault.account(AccountID("ben"))
      account.stage = .active
      try vault.put(account)
      let well = try await diagnosis(state)
      #expect(ill.faults.subtracting(well.faults) == ["accounts"] && well.faults.isSubset(of: ill.faults))
      #expect(ill.exit == 1 && well.exit == (well.faults.isEmpty ? 0 : 1))
    }
  }
}
