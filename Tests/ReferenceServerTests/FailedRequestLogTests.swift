// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTPTypes
import Hummingbird
import RecordedLog
import ReferenceProtocol
import Testing

@testable import ReferenceServer
@testable import TokenServerCore
@testable import TokenServerHTTP
@testable import TokenServerStore

/// The log lines about requests that fail, which clients can repeat.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct FailedRequestLogTests {
  private struct UnexpectedError: Error {}

  private struct NoScripts: ScriptRunner {
    func run(_ call: ScriptCall, of authenticator: ServerConfiguration.Authenticator) async -> ScriptResult? { nil }
    func canRun(_ authenticator: ServerConfiguration.Authenticator) -> Bool { false }
  }

  @Test("Lines about failed requests are limited for each device, and for all other clients together")
  func limited() async throws {
    let lines = RecordedLog()
    let requests = try FailingRequests(DeviceLog(lines.logger) { .zero })
    let errors: [any Error] = [
      StorageUnavailableError.busy("crowded"), StorageUnavailableError(reason: "gone", description: "gone"),
      UnexpectedError(),
    ]
    func fail(_ count: Int, of sender: ClientID? = nil) async throws {
      for number in 0..<count {
        _ = try await requests.response(to: "/device/v1/pending", of: sender, throwing: errors[number % errors.count])
      }
    }
    try await fail(300)
    #expect(lines.all.count == DeviceLog.hourly + 1)
    #expect(lines.all.last?.hasPrefix("more than 240 lines about clients that are not authenticated devices") == true)
    try await fail(300, of: ClientID("A"))
    #expect(lines.all.count == 2 * (DeviceLog.hourly + 1))
    #expect(lines.all.last?.hasPrefix("more than 240 lines about the device A") == true)
    try await fail(1, of: ClientID("B"))
    #expect(lines.all.last == "GET /device/v1/pending failed: nothing can be stored (busy)")
  }

  @Test("Lines about the failed requests of a device count for this device") func authenticated() async throws {
    let temporary = try TemporaryStore()
    let (lines, hub, origin) = (RecordedLog(), EventHub(), Origin())
    origin.resolve("https://h")
    let announcer = ServerAnnouncer(hub: hub, callbacks: AsyncSignal(), log: lines.logger)
    let responder = HTTPInterfaces(
      store: temporary.store, hasher: temporary.hasher, configuration: ServerConfiguration(), origin: origin,
      clock: .system, announcer: announcer, hub: hub,
      expiry: ExpiryTimer(store: temporary.store, announcer: announcer, clock: .system, retentionHours: 1),
      mailboxes: nil, scripts: NoScripts()
    ).router().buildResponder()
    let path = "/device/v1/profiles/PROF01/push"
    /// Sends requests of a new device about its profile, which is unreadable.
    func fail(_ count: Int, of client: ClientID) async throws {
      let key = try P256PrivateKey()
      let token = NewAccessToken(for: client, profileID: nil, by: .device, hasher: temporary.hasher)
      try await addDevice(client, key.publicKey, token, to: temporary.store)
      for _ in 0..<count {
        let proof = try DPoPProof.make(
          method: "DELETE", url: origin.issuer + path, nonce: hub.nonces.current(),
          accessToken: token.response.accessToken, issuedAt: 0, key: key)
        let response = try await responder.response(
          path, method: .delete, headers: [.authorization: "DPoP \(token.response.accessToken)", .dpop: proof])
        #expect(response.status == .internalServerError)
      }
    }
    try await fail(DeviceLog.hourly + 10, of: ClientID("A"))
    #expect(lines.all.count == DeviceLog.hourly + 1)
    #expect(lines.all.last?.hasPrefix("more than 240 lines about the device A") == true)
    try await fail(1, of: ClientID("B"))
    #expect(lines.all.last?.hasPrefix("DELETE \(path) failed: ") == true)
  }

  private func addDevice(
    _ client: ClientID, _ key: P256PublicKey, _ token: NewAccessToken, to store: Store
  ) async throws {
    let registration = RegistrationRequest(
      clientName: "n", softwareID: "s", softwareVersion: "1", key: JWK(key),
      capabilities: .init(display: .none, keypad: false, button: true, led: .mono))
    try await store.write { database in
      let now = ServerClock.system.now()
      try database.insertDevice(id: client, registration: registration, key: key, credential: [1], now: now)
      _ = try database.insertUser(UserID(client.text), now: now)
      try database.insertProfile(
        ProfileID("PROF01"), on: client, userID: UserID(client.text), activation: [1], now: Timestamp(-1))
      try token.insert(into: database, now: now)
    }
  }
}
