// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import MobileAuth
import Secrets
import ServerBackends
import Synchronization
import Testing

@testable import PrivacyIDEAAdapter

/// One token, one server, and an unreliable network between them.
final class EnrollmentFixture: Sendable {
  let clock = ManualClock(wallClockMilliseconds: 1_795_253_339_000)
  let environment: TokenEnvironment
  let registry = MemoryRegistry()
  let server: FakePushServer
  let progress = Mutex<[String]>([])
  let keptPINs = Mutex<[AccountID: PIN]>([:])
  /// The faults of the next requests; nil for none.
  let weather = Mutex<[Weather?]>([])

  enum Weather { case neverArrives, answerIsLost }

  init() {
    server = FakePushServer(clock: clock)
    environment = .test(clock)
  }

  var http: RecordingHTTPTransport {
    RecordingHTTPTransport { [self] (request: HTTPRequest) throws(HTTPTransportError) in
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
  func enrollment(pin: PIN? = nil, _ change: (inout PushEnrollment.Settings) -> Void = { _ in }) -> PushEnrollment {
    let prompter = pin.map { pin in
      PINPrompter {
        pin
      } keep: { [self] account, pin in
        keptPINs.withLock { $0[account] = pin }
      }
    }
    return enrollment(prompter: prompter, change)
  }

  let settings = {
    var settings = PushEnrollment.Settings()
    settings.keyBits = 2048
    return settings
  }()

  func enrollment(
    prompter: PINPrompter?, _ change: (inout PushEnrollment.Settings) -> Void = { _ in }
  ) -> PushEnrollment {
    var settings = settings
    change(&settings)
    var enrollment = PushEnrollment(
      registry: registry, in: environment, settings: settings, pinPrompter: prompter,
      progress: { [self] line in progress.withLock { $0.append(line) } }, makeHTTPTransport: { [self] _ in http })
    enrollment.makeRSAKey = { [self] _ in nextKey() }
    return enrollment
  }

  private let keysTaken = Mutex(0)

  /// Returns another key than the previous call. To generate a 2048-bit key for each enrollment would take most of the
  /// time of these tests.
  private func nextKey() -> RSAPrivateKey {
    keysTaken.withLock { taken in
      taken += 1
      return PrivacyIDEAFixture.deviceKeys[taken % PrivacyIDEAFixture.deviceKeys.count]
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
      endpoint: FakePushServer.endpoint, http: RecordingHTTPTransport { [server] in server.respond(to: $0) },
      clock: ResponseClock(in: .test(clock)))
    let list = try? await client.poll(serial: record.profile, key: keys.device)
    return list != nil && keys.server == FakePushServer.signingKey.publicKey
  }
}
