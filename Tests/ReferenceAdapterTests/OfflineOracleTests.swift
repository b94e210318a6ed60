// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import Foundation
import HTTP
import MobileAuth
import OfflineAttack
import PINProtection
import ReferenceProtocol
import Secrets
import ServerBackends
import Synchronization
import Testing
import Vault

@testable import ReferenceAdapter

/// An attacker who has the device secret and everything that the adapter wrote about a PIN. The key derivation is cheap
/// here so that all PINs can be tried; the cost of a guess is not tested.
@Suite(.timeLimit(.minutes(5))) struct OfflineOracleTests {
  private static let cheap = Scrypt.Parameters(cost: 4, blockSize: 2, parallelization: 1)
  private static let dearer = Scrypt.Parameters(cost: 8, blockSize: 2, parallelization: 1)

  private static func pin(_ digits: String) -> PIN { PIN(digits: SecretBytes(copying: Array(digits.utf8))) }

  @Test("A whole life of the adapter tells no PIN") func aWholeLifeOfTheAdapterTellsNoPIN() async throws {
    let life = try await Life()
    // A fifth of the PINs, with those that were used. The vault's test of the same attack tries all.
    let pins = OfflineAttack.fiveDigits.filter { $0.hasSuffix("9") || $0.hasSuffix("0") }
    let attack = await OfflineAttack(on: life.loot, pins: pins)
    // The first PIN, two changes, and another key derivation; two fingerprints with each of these. Some byte sequences
    // of OpenPGP keys look like tokens, too.
    #expect(attack.blobCount >= 12)
    for (token, pin) in life.tokens { #expect(attack.unwraps(token, with: pin)) }
    #expect(await attack.signs().isEmpty)
  }

  /// An adapter that reuses the refresh token when the PIN changes.
  @Test("One token under two PINs would tell both") func oneTokenUnderTwoPINsWouldTellBoth() async throws {
    let life = try await Life(reusingToken: true)
    // A subset of the PINs is enough to show that the attack detects it.
    let pins = OfflineAttack.fiveDigits.filter { $0.hasSuffix("79") || $0.hasSuffix("80") }
    let attack = await OfflineAttack(on: life.loot, pins: pins)
    let signs = await attack.signs()
    #expect(signs.contains { Set($0.pins).isSuperset(of: ["13579", "24680"]) })
  }

  /// The stored token of an authenticator is not encrypted with the PIN.
  @Test("The PIN's token as an authenticator's would tell the PIN") func authenticatorWithThePINsToken() async throws {
    let life = try await Life(sharingToken: true)
    let pins = OfflineAttack.fiveDigits.filter { $0.hasSuffix("79") || $0.hasSuffix("80") }
    let attack = await OfflineAttack(on: life.loot, pins: pins)
    #expect(await attack.signs().contains { $0.pins.contains("24680") })
  }

  /// The stored token of a fingerprint is encrypted with the PIN, by another key.
  @Test("The PIN's token as a fingerprint's would tell the PIN") func fingerprintWithThePINsToken() async throws {
    let life = try await Life(sharingTokenWithFinger: true)
    let pins = OfflineAttack.fiveDigits.filter { $0.hasSuffix("79") || $0.hasSuffix("80") }
    let attack = await OfflineAttack(on: life.loot, pins: pins)
    #expect(await attack.signs().contains { $0.pins.contains("24680") })
  }

  /// Enrolls, types the PIN correctly and wrongly, changes it twice, and changes the key derivation, which is a PIN
  /// change as well. After the first change an authenticator is registered, and a fingerprint; after the last one, a
  /// fingerprint again.
  private struct Life {
    private(set) var loot: Loot
    private(set) var tokens: [([UInt8], String)] = []

    /// - Parameters:
    ///   - reusingToken: whether all PINs protect one refresh token.
    ///   - sharingToken: whether the authenticator has the PIN's refresh token.
    ///   - sharingTokenWithFinger: whether the fingerprint has it.
    init(
      reusingToken: Bool = false, sharingToken: Bool = false, sharingTokenWithFinger: Bool = false
    ) async throws {
      loot = Loot(binding: [])
      let directory = "/tmp/oracle-\(UInt32.random(in: .min ... .max))"
      try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
      defer { try? FileManager.default.removeItem(atPath: directory) }
      let card = try WatchedStorage(directory)
      let server = try FakeServer(registry: card)
      server.on("/configuration", "{}")
      let http = server.makeHTTPTransport()
      var token = Random.bytes(32)
      let first = try ProtectedToken(
        SecretBytes(copying: token), under: OfflineOracleTests.pin("13579"), binding: card.vault.pinBinding,
        parameters: OfflineOracleTests.cheap)
      tokens.append((token, "13579"))
      _ = try server.adapter(http, pin: AccountPIN(first))
      var former = "13579"
      var companions: [(name: String, wrapped: [UInt8])] = []
      for (next, parameters) in [
        ("24680", OfflineOracleTests.cheap), ("86420", OfflineOracleTests.cheap), ("86420", OfflineOracleTests.dearer),
      ] {
        if !reusingToken { token = Random.bytes(32) }
        server.serveChange(of: SecretBytes(copying: token))
        server.on("/profiles/PROFIL/pin-changes/\(FakeServer.changeID)/commit", status: 204, "")
        let adapter = try server.reopened(http, pinBinding: card.vault.pinBinding)
        let account = try adapter.account(AccountID("A"))
        for typed in ["00000", former, "99999"] {
          _ = try adapter.open(account, typed: OfflineOracleTests.pin(typed)).key
        }
        let ticket = try await adapter.beginPINChange(
          AccountID("A"), typing: OfflineOracleTests.pin(former), session: nil)
        _ = try await adapter.finishPINChange(ticket, choosing: OfflineOracleTests.pin(next), parameters: parameters)
        tokens.append((token, next))
        if former == "13579" {
          try await register(sharingToken ? token : Random.bytes(32), at: server, http, card)
        }
        if former == "13579" || parameters == OfflineOracleTests.dearer {
          let fingerToken = sharingTokenWithFinger ? token : Random.bytes(32)
          companions.append(try await registerFinger(fingerToken, next, at: server, http, card))
          tokens.append((fingerToken, next))
        }
        former = next
      }
      loot = card.loot()
      for companion in companions { loot.add(companion: companion.name, companion.wrapped) }
    }

    /// Registers a fingerprint with this refresh token.
    private func registerFinger(
      _ token: [UInt8], _ pin: String, at server: FakeServer, _ http: RecordingHTTPTransport, _ card: WatchedStorage
    ) async throws -> (name: String, wrapped: [UInt8]) {
      server.list(("finger", .biometric, false))
      server.acceptRegistration(
        of: SecretBytes(copying: token), as: "finger", activation: HTTPResponse(status: 204))
      let board = ApprovalCapabilities(display: .none, keypad: true, button: true, led: .rgb)
      let adapter = try server.reopened(
        http, pinBinding: card.vault.pinBinding, capabilities: board,
        drivers: AuthenticatorDrivers([ScriptedDriver("finger", kind: .biometric)]))
      adapter.announced.withLock { $0 = adapter.capabilities }
      adapter.hasAuthenticators.withLock { $0 = true }
      let session = UserSession(
        account: AccountID("A"), until: server.clock.now + .seconds(60), accessToken: "U")
      try await adapter.registerBiometric(
        adapter.use("finger", of: AccountID("A"), for: .register),
        with: AuthenticatorData(SecretBytes(copying: []), registration: Random.bytes(3000)),
        typing: OfflineOracleTests.pin(pin), in: session)
      server.on("\(FakeServer.authenticators)/finger/deregistration", status: 204, "")
      let stored = try #require(adapter.account(AccountID("A")).registered("finger"))
      return (try #require(stored.wrapName), stored.token.withExposedSecret { Array($0) })
    }

    /// Registers an authenticator with this refresh token.
    private func register(
      _ token: [UInt8], at server: FakeServer, _ http: RecordingHTTPTransport, _ card: WatchedStorage
    ) async throws {
      server.list(("number", .custom, false))
      server.acceptRegistration(of: SecretBytes(copying: token), activation: HTTPResponse(status: 204))
      let board = ApprovalCapabilities(display: .none, keypad: true, button: true, led: .rgb)
      let adapter = try server.reopened(
        http, pinBinding: card.vault.pinBinding, capabilities: board,
        drivers: AuthenticatorDrivers([KeypadCodeDriver("number")]))
      adapter.announced.withLock { $0 = adapter.capabilities }
      adapter.hasAuthenticators.withLock { $0 = true }
      let session = UserSession(
        account: AccountID("A"), until: server.clock.now + .seconds(60), accessToken: "U")
      _ = try await adapter.register(
        adapter.use("number", of: AccountID("A"), for: .register),
        with: AuthenticatorData(SecretBytes(copying: Array("4711".utf8))), in: session)
      server.list(("number", .custom, true))
    }
  }
}

/// A vault that keeps every state of its storage.
private final class WatchedStorage: SharedEnrollmentRegistry {
  let vault: Vault
  private let directory: String
  private let states = Mutex((opened: [[UInt8]](), written: [[UInt8]]()))

  init(_ directory: String) throws {
    self.directory = directory
    vault = try Vault.open(
      directory: directory, deviceSecret: DeviceSecret.load(stateDirectory: directory, credentialsDirectory: nil))
  }

  func servers() throws(StateStoreError) -> [TokenServerRecord] { try vault.servers() }
  func accounts() throws(StateStoreError) -> [AccountRecord] { try vault.accounts() }

  func put(_ server: TokenServerRecord) throws(StateStoreError) {
    try vault.put(server)
    try look()
  }

  func put(_ account: AccountRecord, _ entry: AuditEntry?) throws(StateStoreError) {
    try vault.put(account, entry)
    try look()
  }

  func change(_ known: AccountRecord, _ change: AccountChange) throws(StateStoreError) -> Bool {
    let isChanged = try vault.change(known, change)
    try look()
    return isChanged
  }

  private func look() throws(StateStoreError) {
    let opened = try vault.accounts().map(\.secrets) + vault.servers().map(\.secrets)
    let files = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    let written = files.compactMap { FileManager.default.contents(atPath: "\(directory)/\($0)") }
    states.withLock { states in
      states.opened += opened.map { $0.withExposedSecret { Array($0) } }
      states.written += written.map { Array($0) }
    }
  }

  func loot() -> Loot {
    var loot = Loot(binding: vault.pinBinding.withExposedSecret { Array($0) })
    let states = states.withLock { $0 }
    for secret in states.opened { loot.add(opened: secret) }
    for bytes in states.written { loot.add(written: bytes) }
    return loot
  }
}
