// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Courier
import Cryptography
import MobileAuth
import Secrets
import Synchronization
import Testing

@testable import PrivacyIDEAAdapter

/// One token, one server, and an unreliable network between them.
final class EnrolmentWorld: Sendable {
  let timekeeper = ManualTimekeeper(wallClockMilliseconds: 1_795_253_339_000)
  let registry = MemoryRegistry()
  let server: FakePushServer
  let progress = Mutex<[String]>([])
  let keptPINs = Mutex<[AccountID: PIN]>([:])
  /// The faults of the next requests; nil for none.
  let weather = Mutex<[Weather?]>([])

  enum Weather { case neverArrives, answerIsLost }

  init() { server = FakePushServer(timekeeper: timekeeper) }

  var courier: RecordingCourier {
    RecordingCourier { [self] (request: HTTPRequest) throws(CourierError) in
      switch weather.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
      case .neverArrives: throw .unreachable("no route")
      case .answerIsLost:
        _ = server.respond(to: request)
        throw .timedOut(after: .seconds(60))
      case nil: return server.respond(to: request)
      }
    }
  }

  /// - Parameter pin: the PIN that the user chooses; nil without a keypad.
  func enrolment(pin: PIN? = nil, _ change: (inout PushEnrolment.Settings) -> Void = { _ in }) -> PushEnrolment {
    let desk = pin.map { pin in
      PINDesk {
        pin
      } keep: { [self] account, pin in
        keptPINs.withLock { $0[account] = pin }
      }
    }
    return enrolment(desk: desk, change)
  }

  let settings = {
    var settings = PushEnrolment.Settings()
    settings.keyBits = 2048
    return settings
  }()

  func enrolment(
    desk: PINDesk?, _ change: (inout PushEnrolment.Settings) -> Void = { _ in }
  ) -> PushEnrolment {
    var settings = settings
    change(&settings)
    var enrolment = PushEnrolment(
      registry: registry, timekeeper: timekeeper, settings: settings, pinDesk: desk,
      progress: { [self] line in progress.withLock { $0.append(line) } }, makeCourier: { [self] _ in courier })
    enrolment.makeRSAKey = { [self] _ in nextKey() }
    return enrolment
  }

  private let keysTaken = Mutex(0)

  /// Returns another key than the previous call. To generate a 2048-bit key for each enrollment would take most of the
  /// time of these tests.
  private func nextKey() -> RSAPrivateKey {
    keysTaken.withLock { taken in
      taken += 1
      return ServerWorld.deviceKeys[taken % ServerWorld.deviceKeys.count]
    }
  }

  func credentials(_ name: String) throws -> PushCredentials? {
    try registry.accounts().first { $0.id.text == name }.map { record in try PushCredentials(record) }
  }

  /// Whether server and token have the same active keys.
  func isUsable(_ name: String) async throws -> Bool {
    guard let record = try registry.accounts().first(where: { $0.id.text == name }), record.stage == .active,
      let keys = try PushCredentials(record).active
    else { return false }
    let client = PushClient(
      endpoint: FakePushServer.endpoint, courier: RecordingCourier { [server] in server.respond(to: $0) },
      clock: ServerClock(timekeeper))
    let list = try? await client.poll(serial: record.profile, key: keys.device)
    return list != nil && keys.server == FakePushServer.signingKey.publicKey
  }
}

@Suite(.timeLimit(.minutes(5))) struct `Enrolling` {
  private let world = EnrolmentWorld()
  private let trust = ServerTrust()

  @Test func `Makes an account that polls`() async throws {
    let account = try await world.enrolment().enrol(world.server.prepare("PIPU1"), name: nil, trust: trust)
    #expect(account.id.text == "PIPU1" && account.stage == .active)
    #expect(try await world.isUsable("PIPU1"))
    #expect(try world.registry.servers().map(\.id.text) == ["pi.example/ttype/push"])
    #expect(world.registry.audit.map(\.kind) == [.enrolled])
    #expect(try world.credentials("PIPU1")?.next == nil)
  }

  @Test func `Makes a key with as many bits as the settings say`() async throws {
    #expect(PushEnrolment.Settings().keyBits == 3072)
    for (serial, bits) in [("PIPU1", 2048), ("PIPU2", 3072)] {
      var settings = PushEnrolment.Settings()
      settings.keyBits = bits
      let enrolment = PushEnrolment(
        registry: world.registry, timekeeper: world.timekeeper, settings: settings, pinDesk: nil, progress: { _ in },
        makeCourier: { [world] _ in world.courier })
      _ = try await enrolment.enrol(world.server.prepare(serial), name: nil, trust: trust)
      #expect(try await world.isUsable(serial))
      #expect(world.server.state.withLock { $0.keys[serial]?.bits } == bits)
    }
  }

  @Test func `Has a new gateway address each time, only with an MQTT subscriber`() async throws {
    for (serial, listens) in [("PIPU1", false), ("PIPU2", true), ("PIPU3", true)] {
      let enrolment = world.enrolment { $0.hasMailbox = listens }
      _ = try await enrolment.enrol(world.server.prepare(serial), name: nil, trust: trust)
    }
    let mailboxes = world.server.state.withLock { $0.mailboxes }
    #expect(mailboxes.first == "no_firebase_token" && Set(mailboxes).count == 3)
    #expect(mailboxes.dropFirst().allSatisfy { $0.count == 36 })
  }

  /// A power loss at every write, and again during the retry: the same URL always results in an account that polls.
  @Test func `Goes on after a power loss at any write`() async throws {
    for cut in 0..<3 {
      let world = EnrolmentWorld()
      let uri = world.server.prepare("PIPU1")
      world.registry.cut(after: cut)
      await #expect(throws: CustodyFault.storage("the power is gone")) {
        try await world.enrolment().enrol(uri, name: "desk", trust: trust)
      }
      world.registry.cut(after: nil)
      guard cut < 2 else {
        // The server accepted the key, and a power loss prevented the server's key from being stored: no retry can get
        // it again.
        await #expect(throws: TokenServerFault.self) {
          try await world.enrolment().enrol(uri, name: "desk", trust: trust)
        }
        #expect(try world.registry.accounts().isEmpty)
        continue
      }
      _ = try await world.enrolment().enrol(uri, name: "desk", trust: trust)
      #expect(try await world.isUsable("desk"))
    }
  }

  @Test func `The key is stored before the server receives it, and is the key that it receives`() async throws {
    let uri = world.server.prepare("PIPU1")
    world.weather.withLock { $0 = [.neverArrives, .neverArrives] }
    await #expect(throws: TokenServerFault.unreachable("the token server cannot be reached: no route")) {
      try await world.enrolment().enrol(uri, name: nil, trust: trust)
    }
    let key = try #require(try world.credentials("PIPU1")?.next?.key)
    #expect(try world.registry.accounts().map(\.stage) == [.enrolling])
    _ = try await world.enrolment().enrol(uri, name: nil, trust: trust)
    #expect(try world.credentials("PIPU1")?.active?.device.publicKeyOnTheWire == key.publicKeyOnTheWire)
    #expect(try await world.isUsable("PIPU1"))
  }

  @Test func `A connection that is lost before the request arrived is retried once`() async throws {
    world.weather.withLock { $0 = [.neverArrives] }
    _ = try await world.enrolment().enrol(world.server.prepare("PIPU1"), name: nil, trust: trust)
    #expect(try await world.isUsable("PIPU1"))
  }

  @Test func `After a lost answer the message asks for another URL, and nothing stays`() async throws {
    world.weather.withLock { $0 = [.answerIsLost] }
    let lost = TokenServerFault.alreadyEnrolled(
      "the token server expects no enrollment: the token is enrolled or deleted")
    await #expect(throws: lost) {
      try await world.enrolment().enrol(world.server.prepare("PIPU1"), name: nil, trust: trust)
    }
    #expect(try world.registry.accounts().isEmpty)
    _ = try await world.enrolment().enrol(world.server.prepare("PIPU1"), name: nil, trust: trust)
    #expect(try await world.isUsable("PIPU1"))
  }

  @Test func `A known serial gets new keys, and keeps its name`() async throws {
    _ = try await world.enrolment().enrol(world.server.prepare("PIPU1"), name: "desk", trust: trust)
    let former = try #require(try world.credentials("desk")?.active?.device.publicKeyOnTheWire)
    _ = try await world.enrolment().enrol(world.server.prepare("PIPU1"), name: nil, trust: trust)
    #expect(try world.registry.accounts().map(\.id.text) == ["desk"])
    #expect(try world.credentials("desk")?.active?.device.publicKeyOnTheWire != former)
    #expect(try await world.isUsable("desk"))
  }

  @Test func `The old keys count until the server has taken the new ones`() async throws {
    _ = try await world.enrolment().enrol(world.server.prepare("PIPU1"), name: nil, trust: trust)
    let uri = world.server.prepare("PIPU1")
    world.weather.withLock { $0 = [.neverArrives, .neverArrives] }
    await #expect(throws: TokenServerFault.self) { try await world.enrolment().enrol(uri, name: nil, trust: trust) }
    #expect(try await world.isUsable("PIPU1"))
    #expect(try world.credentials("PIPU1")?.next != nil)
    // A wrong URL for a known serial deletes nothing either.
    let wrong = uri.replacing("enrollment_credential=", with: "enrollment_credential=f")
    await #expect(throws: TokenServerFault.self) { try await world.enrolment().enrol(wrong, name: nil, trust: trust) }
    #expect(try await world.isUsable("PIPU1"))
    #expect(try world.credentials("PIPU1")?.next == nil)
    _ = try await world.enrolment().enrol(uri, name: nil, trust: trust)
    #expect(try await world.isUsable("PIPU1"))
  }

  @Test func `An account that lost its keys is enrolled again under its name`() async throws {
    _ = try await world.enrolment().enrol(world.server.prepare("PIPU1"), name: "desk", trust: trust)
    try world.registry.dropKeys(of: AccountID("desk"), AuditEntry(.disenrolled, wallClockMilliseconds: 0))
    _ = try await world.enrolment().enrol(world.server.prepare("PIPU1"), name: nil, trust: trust)
    #expect(try await world.isUsable("desk"))
  }

  @Test func `A URL whose time is over is given up`() async throws {
    let uri = world.server.prepare("PIPU1")
    world.weather.withLock { $0 = [.neverArrives, .neverArrives] }
    await #expect(throws: TokenServerFault.self) { try await world.enrolment().enrol(uri, name: nil, trust: trust) }
    world.timekeeper.advance(by: .seconds(600))
    await #expect(throws: TokenServerFault.refused("the enrollment URL has expired; ask for a new one")) {
      try await world.enrolment().enrol(uri, name: nil, trust: trust)
    }
    #expect(try world.registry.accounts().isEmpty)
  }

  @Test func `Two accounts have two names`() async throws {
    _ = try await world.enrolment().enrol(world.server.prepare("PIPU1"), name: "desk", trust: trust)
    await #expect(throws: TokenServerFault.self) {
      try await world.enrolment().enrol(world.server.prepare("PIPU2"), name: "desk", trust: trust)
    }
    _ = try await world.enrolment().enrol(world.server.prepare("PIPU2"), name: nil, trust: trust)
    #expect(try world.registry.accounts().map(\.id.text) == ["PIPU2", "desk"])
  }

  @Test func `Certificates are verified unless a pin or an authority is named`() async throws {
    let uri = world.server.prepare("PIPU1").replacing("sslverify=1", with: "sslverify=0")
    await #expect(throws: TokenServerFault.self) { try await world.enrolment().enrol(uri, name: nil, trust: trust) }
    #expect(try world.registry.accounts().isEmpty)
    _ = try await world.enrolment().enrol(uri, name: nil, trust: ServerTrust(pins: ["pin"]))
    #expect(try PrivacyIDEA.pins(of: try #require(try world.registry.servers().first)) == ["pin"])
  }

  @Test("An untrusted certificate is not retried, and leaves no account")
  func untrustedCertificateIsFinal() async throws {
    let calls = Mutex(0)
    let courier = RecordingCourier { (_: HTTPRequest) throws(CourierError) in
      calls.withLock { $0 += 1 }
      throw .untrusted("self-signed certificate")
    }
    var settings = PushEnrolment.Settings()
    settings.keyBits = 2048
    let enrolment = PushEnrolment(
      registry: world.registry, timekeeper: world.timekeeper, settings: settings, pinDesk: nil, progress: { _ in },
      makeCourier: { _ in courier })
    let fault = TokenServerFault.untrusted(CourierError.untrusted("self-signed certificate").description)
    await #expect(throws: fault) {
      try await enrolment.enrol(world.server.prepare("PIPU1"), name: nil, trust: trust)
    }
    #expect(calls.withLock { $0 } == 1)
    #expect(try world.registry.accounts().isEmpty)
  }

  @Test func `The pins of others there stay until the server was reached with these`() async throws {
    func pins() throws -> [String] { try PrivacyIDEA.pins(of: try #require(try world.registry.servers().first)) }
    let pinned = ServerTrust(pins: ["the right one"])
    _ = try await world.enrolment().enrol(world.server.prepare("PIPU1"), name: nil, trust: pinned)
    let spent = world.server.prepare("PIPU2").replacing("PIPU2", with: "PIPU9")
    await #expect(throws: TokenServerFault.self) { try await world.enrolment().enrol(spent, name: nil, trust: trust) }
    #expect(try pins() == ["the right one"])
    // An enrollment without a pin keeps the pins of others.
    _ = try await world.enrolment().enrol(world.server.prepare("PIPU3"), name: nil, trust: trust)
    #expect(try pins() == ["the right one"])
    #expect(!world.registry.audit.contains { $0.kind == .pinsDropped })
    var dropping = trust
    dropping.dropsPins = true
    _ = try await world.enrolment().enrol(world.server.prepare("PIPU4"), name: nil, trust: dropping)
    #expect(try pins() == [])
    #expect(world.registry.audit.filter { $0.kind == .pinsDropped }.count == 1)
  }

  @Test func `A token that must be unlocked gets its PIN before the request to the server`() async throws {
    let pin = PIN(digits: SecretBytes(copying: Array("13579".utf8)))
    let uri = world.server.prepare("PIPU1", more: "&pin=True&app_force_unlock=pin")
    await #expect(throws: TokenServerFault.self) { try await world.enrolment().enrol(uri, name: nil, trust: trust) }
    _ = try await world.enrolment(pin: pin).enrol(uri, name: nil, trust: trust)
    let credentials = try #require(try world.credentials("PIPU1"))
    #expect(credentials.active?.wantsPIN == true && credentials.pinLength == 5)
    #expect(world.keptPINs.withLock { $0 } == [AccountID("PIPU1"): pin])
  }

  /// The PIN prompt was canceled, or a power loss occurred.
  @Test func `A PIN that was not chosen is asked for by the next try`() async throws {
    let pin = PIN(digits: SecretBytes(copying: Array("13579".utf8)))
    let uri = world.server.prepare("PIPU1", more: "&pin=True&app_force_unlock=pin")
    await #expect(throws: CancellationError.self) {
      try await world.enrolment(
        desk: PINDesk {
          throw CancellationError()
        } keep: { _, _ in
        }
      ).enrol(uri, name: nil, trust: trust)
    }
    #expect(try world.credentials("PIPU1")?.next != nil)
    let account = try await world.enrolment(pin: pin).enrol(uri, name: nil, trust: trust)
    #expect(try PrivacyIDEA.pinLength(of: account) == 5)
    #expect(world.keptPINs.withLock { $0 } == [AccountID("PIPU1"): pin])
  }

  @Test func `A PIN that the user chose stays required with new keys`() async throws {
    let pin = PIN(digits: SecretBytes(copying: Array("13579".utf8)))
    let uri = world.server.prepare("PIPU1")
    await #expect(throws: TokenServerFault.self) {
      try await world.enrolment { $0.asksForPIN = true }.enrol(uri, name: nil, trust: trust)
    }
    _ = try await world.enrolment(pin: pin) { $0.asksForPIN = true }.enrol(uri, name: nil, trust: trust)
    #expect(world.keptPINs.withLock { $0 } == [AccountID("PIPU1"): pin])
    let again = try await world.enrolment().enrol(world.server.prepare("PIPU1"), name: nil, trust: trust)
    let credentials = try PushCredentials(again)
    #expect(credentials.active?.wantsPIN == true && credentials.pinLength == 5)
    #expect(try await world.isUsable("PIPU1"))
  }

  /// During a new enrollment, another command sets the account's first PIN.
  private func choosePIN(of world: EnrolmentWorld) throws {
    try world.registry.update(AccountID("PIPU1")) { try PrivacyIDEA.with(pinLength: 6, $0) }
  }

  @Test func `A PIN that is chosen meanwhile is kept`() async throws {
    _ = try await world.enrolment().enrol(world.server.prepare("PIPU1"), name: nil, trust: trust)
    let desk = PINDesk {
      try choosePIN(of: world)
      return PIN(digits: SecretBytes(copying: Array("13579".utf8)))
    } keep: { account, pin in
      world.keptPINs.withLock { $0[account] = pin }
    }
    _ = try await world.enrolment(desk: desk) { $0.asksForPIN = true }
      .enrol(world.server.prepare("PIPU1"), name: nil, trust: trust)
    let credentials = try #require(try world.credentials("PIPU1"))
    #expect(world.keptPINs.withLock { $0 }.isEmpty && credentials.pinLength == 6)
    #expect(credentials.active?.wantsPIN == true)
  }

  @Test func `A PIN that is chosen during the request to the server stays required`() async throws {
    _ = try await world.enrolment().enrol(world.server.prepare("PIPU1"), name: nil, trust: trust)
    let again = PushEnrolment(
      registry: world.registry, timekeeper: world.timekeeper, settings: world.settings, pinDesk: nil,
      progress: { line in if line.hasPrefix("enrolling") { try? choosePIN(of: world) } },
      makeCourier: { _ in world.courier })
    _ = try await again.enrol(world.server.prepare("PIPU1"), name: nil, trust: trust)
    let credentials = try #require(try world.credentials("PIPU1"))
    #expect(credentials.pinLength == 6 && credentials.active?.wantsPIN == true)
  }

  @Test func `An account gets a first PIN later`() async throws {
    let account = try await world.enrolment().enrol(world.server.prepare("PIPU1"), name: nil, trust: trust)
    #expect(try PrivacyIDEA.pinLength(of: account) == nil)
    let credentials = try PushCredentials(PrivacyIDEA.with(pinLength: 6, account))
    #expect(credentials.active?.wantsPIN == true && credentials.pinLength == 6)
    let lost = account.with(SecretBytes(copying: []))
    #expect(throws: CustodyFault.self) { try PrivacyIDEA.with(pinLength: 6, lost) }
  }

  @Test func `A required fingerprint is refused, unless a PIN may replace it`() async throws {
    let pin = PIN(digits: SecretBytes(copying: Array("13579".utf8)))
    let uri = world.server.prepare("PIPU1", more: "&app_force_unlock=biometric")
    await #expect(throws: TokenServerFault.self) {
      try await world.enrolment(pin: pin).enrol(uri, name: nil, trust: trust)
    }
    let account = try await world.enrolment(pin: pin) { $0.takesPINForBiometric = true }
      .enrol(uri, name: nil, trust: trust)
    #expect(try PushCredentials(account).active?.wantsPIN == true)
  }

  /// A board with an unset clock, and boards that are 90 s off.
  @Test(arguments: [Duration.seconds(1_795_253_339), .seconds(90), .seconds(-90)])
  func `A wrong clock is set by the server's`(drift: Duration) async throws {
    let timekeeper = ManualTimekeeper(
      wallClockMilliseconds: drift > .seconds(1000) ? 0 : 1_795_253_339_000)
    let server = FakePushServer(timekeeper: timekeeper)
    server.state.withLock { $0.drift = drift }
    let key = try RSAPrivateKey(bits: 2048)
    server.state.withLock { $0.keys["PIPU1"] = key.publicKey }
    let client = PushClient(
      endpoint: FakePushServer.endpoint, courier: RecordingCourier { server.respond(to: $0) },
      clock: ServerClock(timekeeper))
    let first = try await client.poll(serial: "PIPU1", key: .rsa(key))
    // Nothing was signed with a time in 1970: the board asked for the time first.
    #expect(first.correctedClock.map { $0 - .seconds(90) < .seconds(2) } ?? (drift > .seconds(1000)))
    #expect(server.state.withLock { $0.polls.count } == 2)
    #expect(try await client.poll(serial: "PIPU1", key: .rsa(key)).correctedClock == nil)
    #expect(server.state.withLock { $0.polls.count } == 3)
  }
}
