// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import Foundation
import HTTP
import PINProtection
import Secrets
import ServerBackends
import Synchronization
import TestAM
import Testing
import Vault

@testable import MobileAuth
@testable import PingAMAdapter

/// A token with a vault, an AM and an unreliable network.
final class PingAMFixture: Sendable {
  static let realmURL = "https://am.example:8443/am/json/alpha"

  let clock: ManualClock
  let events = RecordedEvents()
  let environment: TokenEnvironment
  let am: TestAM
  let vault: Vault
  let ingress: PushIngress
  let pinVerifier = ScriptedPINVerifier()
  let requests = Mutex<[HTTPRequest]>([])
  let isTamperedWith = Mutex(false)
  let takesPIN = Mutex(true)
  /// The progress messages of enrollments.
  let progress = Mutex<[String]>([])
  /// The number of PINs that were chosen.
  let choices = Mutex(0)
  /// The faults of the next requests; later requests succeed.
  let weather = Mutex<[Weather]>([])
  private let directory: String

  enum Weather {
    case fine, neverArrives, answerIsLost
    /// A load balancer sends the request to AM twice and returns the second response.
    case sentTwice
    /// A gateway in front of AM responds.
    case status(Int)
    /// A captive portal responds.
    case page(Int)
    /// An error of a gateway with the status of a success.
    case errorInSuccess
  }

  init(
    _ version: TestAM.Version = .am802, wallClockMilliseconds: Int64 = 1_795_253_339_000,
    namesRealmInFull: Bool = false
  ) throws {
    let clock = ManualClock(wallClockMilliseconds: wallClockMilliseconds)
    self.clock = clock
    let start = clock.now
    am = TestAM(version, base: "https://am.example:8443/am", realm: "alpha", namesRealmInFull: namesRealmInFull) {
      1_795_253_339_000 + (clock.now - start).milliseconds
    }
    directory = "/dev/shm/pingam-" + Random.uuid()
    vault = try Vault.open(
      directory: directory,
      deviceSecret: try DeviceSecret.load(stateDirectory: directory, credentialsDirectory: nil))
    environment = .test(clock, recordingIn: events)
    ingress = PushIngress(registry: vault, messageStore: vault, in: environment)
  }

  deinit { try? FileManager.default.removeItem(atPath: directory) }

  var http: RecordingHTTPTransport {
    RecordingHTTPTransport { [self] (request: HTTPRequest) throws(HTTPTransportError) in
      requests.withLock { $0.append(request) }
      switch weather.withLock({ $0.isEmpty ? .fine : $0.removeFirst() }) {
      case .fine: return respond(to: request)
      case .neverArrives: throw .unreachable("no route")
      case .status(let status): return HTTPResponse(status: status, body: Array("{}".utf8))
      case .page(let status):
        return HTTPResponse(status: status, body: Array("<html><title>Welcome, guest</title></html>".utf8))
      case .errorInSuccess: return HTTPResponse(status: 200, body: Array(#"{"code":400,"reason":"Bad Request"}"#.utf8))
      case .sentTwice:
        _ = respond(to: request)
        return respond(to: request)
      case .answerIsLost:
        _ = respond(to: request)
        throw .timedOut(after: .seconds(30))
      }
    }
  }

  private func respond(to request: HTTPRequest) -> HTTPResponse {
    let target = request.url.dropFirst("https://".count).drop { $0 != "/" }
    let answer = am.respond(
      method: request.method.rawValue, target: String(target), headers: request.headers.fields, body: request.body)
    return HTTPResponse(status: answer.status, body: Array(answer.body.utf8))
  }

  /// AM sends a push to ann, and the token receives it.
  @discardableResult
  func deliver(_ type: TestAM.PushType = .plain, legacy: Bool = false) throws -> TestAM.Push {
    let push = try #require(am.send("ann", type, isLegacy: legacy))
    try ingress.accept(push.envelope)
    return push
  }

  // MARK: Enrollment

  func enrollment(
    registry: (any SharedEnrollmentRegistry & AuditRecorder)? = nil, pin: PIN? = nil, takesPIN: Bool = false,
    takesPINForBiometric: Bool = true,
    codesWantPIN: Bool = false, otpSecretStore: OTPSecretStore? = nil, mailbox: String? = nil
  ) -> PingAMEnrollment {
    var settings = PingAMEnrollment.Settings()
    settings.asksForPIN = takesPIN
    settings.takesPINForBiometric = takesPINForBiometric
    settings.codesWantPIN = codesWantPIN
    settings.deviceName = "desk token"
    settings.deviceToken = mailbox
    let prompter = pin.map { pin in
      PINPrompter { [self] in
        choices.withLock { $0 += 1 }
        return pin
      } keep: { [pinVerifier] account, _ in
        pinVerifier.hasPIN.withLock { _ = $0.insert(account) }
      }
    }
    return PingAMEnrollment(
      registry: registry ?? vault, in: environment, settings: settings, pinPrompter: prompter,
      isTamperedWith: { [self] in isTamperedWith.withLock { $0 } },
      otpSecretStore: otpSecretStore ?? self.otpSecretStore,
      progress: { [self] line in progress.withLock { $0.append(line) } }, makeHTTPTransport: { [self] _ in http })
  }

  /// Stores the credential in the vault, with a PIN and a cheap key derivation.
  var otpSecretStore: OTPSecretStore {
    OTPSecretStore { [vault] oath, pin, known, account in
      try vault.store(
        OneTimePasswordSetup(algorithm: .sha1, digits: oath.digits, factor: .period(30)), secret: oath.secret,
        of: account, at: try #require(try vault.servers().first),
        under: pin.map {
          PINSetting(pin: $0, limit: 3, parameters: Scrypt.Parameters(cost: 2, blockSize: 1, parallelization: 1))
        }, replacing: known, nil)
    } drop: { [vault] account in
      try vault.dropOneTimePasswords(of: account)
    }
  }

  @discardableResult func enrolled(_ user: String = "ann", pin: PIN? = nil, policies: String? = nil) async throws
    -> AccountRecord
  {
    let uri = am.registrationURI(user, policies: policies)
    let account = try await enrollment(pin: pin, takesPIN: pin != nil).enroll(uri, name: nil, trust: ServerTrust())
    #expect(am.finishRegistration(of: user) != nil)
    return account
  }

  // MARK: Answering

  /// - Parameter canType: whether the board has a keypad.
  func server(
    messageStore: (any PushMessageStore)? = nil, canType: Bool = true, showsNumbers: Bool = false,
    drivers: AuthenticatorDrivers = AuthenticatorDrivers()
  ) throws -> PingAMServerClient {
    let record = try #require(try vault.servers().first)
    var settings = PingAMEnrollment.Settings()
    settings.deviceName = "desk token"
    settings.takesPINForBiometric = takesPIN.withLock { $0 }
    settings.showsNumbers = showsNumbers
    return try PingAMServerClient(
      record, accounts: try vault.accounts(), http: http,
      dependencies: PingAMServerClient.Dependencies(
        ingress: ingress, messageStore: messageStore ?? vault, settings: settings,
        pinVerifier: canType ? pinVerifier : nil, isTamperedWith: { [self] in isTamperedWith.withLock { $0 } },
        in: environment,
        standIns: StandIns(
          of: try vault.accounts(), at: record.id, host: "am.example", registry: vault, drivers: drivers,
          unlocked: UnlockedTokens(), in: environment)))
  }

  /// Applies the user's input to the only open request.
  func answer(
    _ server: PingAMServerClient, _ gesture: Gesture.Kind, pin: PIN? = nil, choice: String? = nil, key: String = "key",
    data: AuthenticatorData? = nil
  ) async throws -> SealedResponse {
    let request = try await server.open(try #require(try await server.pendingRequests().first))
    let response = try #require(
      request.answered(
        by: Gesture(gesture, held: .seconds(1)), typing: pin, data: data, choosing: choice, after: .seconds(1),
        idempotencyKey: key))
    return try await server.seal(response)
  }
}

/// Accepts the PIN "13579" and counts wrong ones.
final class ScriptedPINVerifier: PINVerifier {
  let hasPIN = Mutex<Set<AccountID>>([])
  let wrong = Mutex(0)
  /// Called before the next PINs are verified.
  let waits = Mutex<[Duration]>([])

  func counts(of account: AccountID) -> FailureCounts? {
    hasPIN.withLock { $0.contains(account) } ? FailureCounts(max: 3, previous: wrong.withLock { $0 }) : nil
  }

  func verify(_ typed: PIN, of account: AccountID) -> PINVerificationResult {
    if let wait = waits.withLock({ $0.popLast() }) { return .mustWait(wait) }
    if typed == pin("13579") { return .right }
    let count = wrong.withLock { count in
      count += 1
      return count
    }
    return count == 3 ? .wiped : .wrong(FailureCounts(max: 3, previous: count))
  }
}

func pin(_ digits: String) -> PIN { PIN(digits: SecretBytes(copying: Array(digits.utf8))) }
