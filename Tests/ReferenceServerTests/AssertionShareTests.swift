// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import OpenPGP
import ReferenceProtocol
import Secrets
import Testing

@testable import ReferenceServer
@testable import TokenServerCore
@testable import TokenServerHTTP
@testable import TokenServerStore

/// How many assertions of a device are accepted: the server stores something for each.
@Suite(.timeLimit(.minutes(1)), .mayBlock) struct AssertionShareTests {
  private let temporary: TemporaryStore
  private let gate: DeviceGate
  private let device = ClientID("C1")
  private let profile = ProfileID("PROF01")

  /// A gate that accepts three assertions of a device.
  init() throws {
    temporary = try TemporaryStore()
    let origin = Origin()
    origin.resolve("https://h")
    let keyring = ServerKeyring(store: temporary.store.records, hasher: temporary.hasher)
    gate = DeviceGate(
      store: temporary.store, hasher: temporary.hasher, origin: origin, clock: .system, nonces: DPoPNonces(),
      seenProofs: ReplayCache(lifetime: .seconds(300), capacity: 100, share: 100),
      seenAssertions: ReplayCache(lifetime: .seconds(1200), capacity: 100, share: 3),
      limiter: RateLimiter(perSecond: 100, burst: 100),
      revocations: Revocations(store: temporary.store.records, keyring: keyring, origin: origin))
  }

  private func attempt(_ number: Int, of device: ClientID) -> PINAttempt {
    PINAttempt(clientID: device, profileID: profile, key: "pin-change/PROF01/\(number)", requestHash: [0])
  }

  @Test("Attempts at a PIN count with the client assertions of their device, a repeated one once")
  func attempts() async throws {
    #expect(try await gate.remember(assertion: "j", of: device) == .new)
    for number in [1, 2, 2] { try await gate.count(attempt(number, of: device)) }
    let refusal = await #expect(throws: DeviceAPIError.self) { try await gate.count(attempt(3, of: device)) }
    #expect(refusal?.slug == .rateLimited)
    #expect(try await gate.remember(assertion: "k", of: device) == .tooMany)
    try await gate.count(attempt(3, of: ClientID("C2")))
  }

  private static let path = "/device/v1/profiles/PROF01/pin-changes"

  /// Stores a device with a profile and its PIN, and a token of its user.
  private func enroll(_ key: P256PublicKey) async throws -> String {
    let token = NewAccessToken(for: device, profileID: profile, by: .pin, hasher: temporary.hasher)
    let knowledge = try NewKnowledgeKey(clientID: device, profileID: profile, hasher: temporary.hasher)
    let registration = RegistrationRequest(
      clientName: "n", softwareID: "s", softwareVersion: "1", key: JWK(key),
      capabilities: .init(display: .none, keypad: true, button: true, led: .mono))
    let now = ServerClock.system.now()
    try await temporary.store.write { [device, profile] database in
      try database.insertDevice(id: device, registration: registration, key: key, credential: [1], now: now)
      try database.insertProfile(profile, on: device, userID: UserID("alice"), activation: [1], now: now)
      _ = try database.propose(knowledge, nonce: "n", now: now)
      let stored = try #require(try database.profile(profile, on: device))
      _ = try database.activateKnowledge(of: stored, nonce: "n", activation: [2])
      try token.insert(into: database, now: now)
    }
    return token.response.accessToken
  }

  @Test("A device that begins too many PIN changes is refused") func pinChanges() async throws {
    let log = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let announcer = ServerAnnouncer(hub: EventHub(), callbacks: AsyncSignal(), log: log)
    let router = Router(context: ServerContext.self)
    PINChangeRoutes(
      gate: gate, keyring: ServerKeyring(store: temporary.store.records, hasher: temporary.hasher),
      pins: PINAttemptVerifier(store: temporary.store.records, announcer: announcer, clock: .system, limit: 10),
      log: DeviceLog(log)
    ).add(to: router)
    let responder = router.buildResponder()
    let key = try P256PrivateKey()
    let token = try await enroll(key.publicKey)
    let certificate = try OpenPGPKey.generate(userID: "ephemeral").certificate.bytes.base64
    // Of a wrong PIN.
    let knowledge = try KnowledgeKey(
      refreshToken: SecretBytes(copying: [UInt8](repeating: 1, count: 32)), clientID: device.text,
      profileID: profile.text)
    func begin() async throws -> HTTPResponse.Status {
      let proof = try DPoPProof.make(
        method: "POST", url: "https://h" + Self.path, nonce: gate.nonces.current(), accessToken: token, issuedAt: 0,
        key: key)
      let claims = KnowledgeAssertion.Claims(
        clientID: device.text, profileID: profile.text, audience: "https://h" + Self.path, identifier: Random.uuid(),
        now: gate.clock.nowSeconds)
      let order = PINChangeRequest(assertion: try knowledge.assertion(claims), ephemeralCertificate: certificate)
      return try await responder.response(
        Self.path, method: .post, headers: [.authorization: "DPoP \(token)", .dpop: proof],
        body: ByteBuffer(bytes: JSON.encode(order))
      ).status
    }
    for _ in 1...3 { #expect(try await begin().code == 422) }
    let refusal = await #expect(throws: DeviceAPIError.self) { _ = try await begin() }
    #expect(refusal?.slug == .rateLimited)
  }
}
