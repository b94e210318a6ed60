// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import ServerBackends

/// Push tokens of privacyIDEA and eduMFA.
package struct PrivacyIDEABackend: ServerBackend, FirstPIN {
  package static let kind = PrivacyIDEA.kind
  package static let displayName = "privacyIDEA and eduMFA"
  package static let uriPrefixes = ["otpauth://pipush/", "pia://pipush/", "edumfa-push://edumfa/"]
  package static let enrollmentOptions: Set<EnrollmentOption> = [.pin]

  private let context: BackendContext

  package init(_ context: BackendContext) { self.context = context }

  package static func recognizes(_ uri: String) -> Bool { PrivacyIDEA.recognizes(uri) }

  package static func form(of uri: String) throws -> EnrollmentForm {
    _ = try EnrollmentURI(uri)
    return EnrollmentForm(enrollmentOptions)
  }

  package func enroll(_ request: EnrollmentRequest) async throws -> AccountRecord {
    let enrollment = PushEnrollment(
      registry: context.store, in: context.environment, settings: settings(for: request),
      pinPrompter: context.pinPrompter(for: request), progress: request.progress,
      makeHTTPTransport: context.makeEnrollmentTransport)
    return try await enrollment.enroll(request.uri, name: request.name, trust: context.trust(for: request))
  }

  /// Read now, for enrollments and requests.
  private var takesPINForBiometric: Bool { context.settings.pinForBiometric ?? false }

  private func settings(for request: EnrollmentRequest) -> PushEnrollment.Settings {
    var settings = PushEnrollment.Settings()
    settings.keyBits = context.settings.keyBits
    settings.prefersElliptic = context.settings.prefersElliptic
    settings.takesPINForBiometric = takesPINForBiometric
    settings.hasGatewayAddress = context.settings.receivesHints
    settings.asksForPIN = request.asksPIN
    return settings
  }

  package func client(
    for server: TokenServerRecord, accounts: [AccountRecord], in environment: TokenEnvironment
  ) throws -> (any TokenServerClient)? {
    var pace = PollingPace()
    pace.idle = context.settings.idlePoll
    pace.fast = context.settings.fastPoll
    pace.lifetime = context.settings.requestLifetime
    return try PrivacyIDEAServerClient(
      server, accounts: accounts, pinVerifier: context.pinVerifier,
      // A challenge names the address of its answer, and is signed.
      http: try context.http(to: server.id, at: nil, pins: CertificatePins(server).pins), in: environment, pace: pace,
      takesPINForBiometric: takesPINForBiometric,
      standIns: context.standIns(of: try Self.withBiometricChecks(accounts), at: server, in: environment))
  }

  /// The accounts whose administrator requires a fingerprint before each approval. One who requires a PIN gets it.
  static func withBiometricChecks(_ accounts: [AccountRecord]) throws(StateStoreError) -> [AccountRecord] {
    var found: [AccountRecord] = []
    for account in accounts where try PushCredentials(account).wantsBiometric { found.append(account) }
    return found
  }
}

extension PrivacyIDEABackend: FormerAccounts {
  package static func upgraded(_ former: AccountRecord) throws(StateStoreError) -> AccountRecord {
    let credentials = try PushCredentials(former: former)
    do { return try credentials.stored(in: former) } catch { throw .corrupt(.keys(of: former.id)) }
  }
}

extension PrivacyIDEAServerClient: PollWaking, TimeSource {}
