// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import Secrets
import ServerBackends
import Synchronization
import Testing

@testable import MobileAuth
@testable import PrivacyIDEAAdapter

/// An enrolled token, its server and an unreliable network.
final class PrivacyIDEAFixture: Sendable {
  static let deviceKeys = try! (0..<3).map { _ in try RSAPrivateKey(bits: 2048) }

  let clock = ManualClock(wallClockMilliseconds: 1_795_253_339_000)
  let server: FakePushServer
  let http: RecordingHTTPTransport
  let token: PrivacyIDEAServerClient
  let events = RecordedEvents()
  let weather = Weather()
  let registry = MemoryRegistry()

  /// The faults of the next requests.
  final class Weather: Sendable {
    enum Kind { case fine, neverArrives, answerIsLost }
    let forecast = Mutex<[Kind]>([])
    var next: Kind { forecast.withLock { $0.isEmpty ? .fine : $0.removeFirst() } }
  }

  init(
    _ product: FakePushServer.Product = .privacyIDEA, accounts count: Int = 1,
    stage: @Sendable (Int) -> EnrollmentStage = { _ in .active }, wantsPIN: Bool = false,
    wantsBiometric: Bool = false, takesPINForBiometric: Bool = false, pinVerifier: (any PINVerifier)? = nil,
    drivers: AuthenticatorDrivers = AuthenticatorDrivers()
  ) throws {
    server = FakePushServer(product, clock: clock)
    let id = TokenServerID("pi.example/ttype/push")
    var records: [AccountRecord] = []
    for number in 0..<count {
      var credentials = PushCredentials()
      let key = Self.deviceKeys[number % Self.deviceKeys.count]
      credentials.active = TokenKeys(
        device: .rsa(key), server: FakePushServer.signingKey.publicKey, wantsPIN: wantsPIN)
      credentials.pinLength = wantsPIN ? 5 : nil
      credentials.wantsBiometric = wantsBiometric
      server.state.withLock { $0.keys["PIPU\(number)"] = key.publicKey }
      var account = AccountRecord(
        id: AccountID("account \(number)"), server: id, profile: "PIPU\(number)", stage: stage(number),
        secrets: SecretBytes(copying: []))
      account.standIns = [StandIn("finger", .finger, registration: [7])]
      records.append(try credentials.stored(in: account))
    }
    let record = TokenServerRecord(
      id: id, kind: PrivacyIDEA.kind, url: FakePushServer.endpoint, secrets: CertificatePins([]).encoded)
    http = RecordingHTTPTransport { [server, weather] (request: HTTPRequest) throws(HTTPTransportError) in
      switch weather.next {
      case .fine: return server.respond(to: request)
      case .neverArrives: throw .unreachable("no route")
      case .answerIsLost:
        _ = server.respond(to: request)
        throw .timedOut(after: .seconds(15))
      }
    }
    token = try PrivacyIDEAServerClient(
      record, accounts: records, pinVerifier: pinVerifier, http: http,
      in: .test(clock, recordingIn: events), takesPINForBiometric: takesPINForBiometric,
      standIns: StandIns(
        of: try PrivacyIDEABackend.withBiometricChecks(records), at: id, host: "pi.example", registry: registry,
        drivers: drivers, unlocked: UnlockedTokens(), in: .test(clock, recordingIn: events)))
  }

  /// Opens the only pending request.
  func open() async throws -> MobileAuthRequest {
    clock.advance(by: .seconds(2))
    let list = try await token.pendingRequests()
    return try await token.open(try #require(list.first))
  }

  /// Runs an answer, from the user's gesture to the server's confirmation.
  func answer(
    _ request: MobileAuthRequest, _ gesture: Gesture.Kind, pin: PIN? = nil, choice: String? = nil, key: String = "key",
    data: AuthenticatorData? = nil
  ) async throws -> Verdict {
    let response = try #require(
      request.answered(
        by: Gesture(gesture, held: .seconds(1)), typing: pin, data: data, choosing: choice, after: .seconds(1),
        idempotencyKey: key))
    return try await token.deliver(try await token.seal(response))
  }
}

func pin(_ digits: String) -> PIN { PIN(digits: SecretBytes(copying: Array(digits.utf8))) }
