// SPDX-License-Identifier: Apache-2.0
package import HTTP
package import MobileAuth
package import ReferenceProtocol
package import Secrets
package import ServerBackends

/// The reference token server.
package struct ReferenceBackend: Reenrollment {
  package static let kind = ReferenceServerClient.kind
  package static let displayName = "the reference token server"
  package static let uriPrefixes = ["approvaltoken://activate?"]
  package static let lastingSecretSchemes: Set<String> = [FleetURI.scheme]
  package static let enrollmentOptions: Set<EnrollmentOption> = [.origins]
  package static let namesAccountsAfterUsers = true

  private let context: BackendContext

  package init(_ context: BackendContext) { self.context = context }

  package static func recognizes(_ uri: String) -> Bool {
    uri.drop(while: \.isWhitespace).lowercased().hasPrefix("approvaltoken:") || isRegistration(uri)
  }

  package static func form(of uri: String) throws -> EnrollmentForm {
    if isRegistration(uri) {
      _ = try FleetURI(parsing: uri)
      return EnrollmentForm([])
    }
    _ = try ActivationURI(parsing: uri)
    return EnrollmentForm(enrollmentOptions)
  }

  package func enroll(_ request: EnrollmentRequest) async throws -> AccountRecord {
    let uri = try ActivationURI(parsing: request.uri)
    return try await enrollment(for: request).enroll(
      uri, name: request.name, trust: context.trust(for: request, pins: uri.pins), capabilities: capabilities,
      origins: request.allowedOrigins)
  }

  private func enrollment(for request: EnrollmentRequest) -> Enrollment {
    let setup = request.pinChooser.map { chooser in
      Enrollment.PINSetup(
        binding: context.store.pinBinding, parameters: context.keyDerivation, choose: chooser.choose)
    }
    return Enrollment(
      registry: context.store, in: context.environment, pinPrompter: setup, deviceName: context.settings.deviceName,
      boardSerial: context.settings.boardSerial, progress: request.progress,
      makeHTTPTransport: context.makeEnrollmentTransport)
  }

  private var capabilities: ApprovalCapabilities {
    let board = context.board ?? BoardCapabilities(hasKeypad: false, hasColorLED: true)
    return ApprovalCapabilities(board).with(context.drivers)
  }

  package func enrollAgain(
    _ account: AccountRecord, typing pin: PIN, _ progress: @escaping @Sendable (String) -> Void
  ) async throws -> AccountRecord {
    guard let server = try context.store.servers().first(where: { $0.id == account.server }) else {
      throw StateStoreError.notFound(.server(account.server))
    }
    let enrollment = Enrollment(
      registry: context.store, in: context.environment, pinPrompter: nil, progress: progress,
      makeHTTPTransport: context.makeEnrollmentTransport)
    return try await enrollment.enrollAgain(
      account, at: server, typing: pin, binding: context.store.pinBinding,
      over: try context.http(to: server.id, at: [server.url], pins: ReferenceServerClient.pins(of: server)),
      unlocking: context.unlockedTokens)
  }

  package func client(
    for server: TokenServerRecord, accounts: [AccountRecord], in environment: TokenEnvironment
  ) throws -> (any TokenServerClient)? {
    try ReferenceServerClient(
      server, accounts: accounts, registry: context.store, pinBinding: context.store.pinBinding,
      http: try context.http(to: server.id, at: [server.url], pins: ReferenceServerClient.pins(of: server)),
      in: environment, broker: context.hintBroker,
      capabilities: context.board.map { ApprovalCapabilities($0) }, drivers: context.drivers,
      unlocked: context.unlockedTokens)
  }
}

extension ReferenceBackend: TypedActivation {
  package static func check(server: String, pins: [String]) throws {
    _ = try form(of: ActivationURI(server: server, code: .random(), pins: pins).text)
  }

  package static func enrollmentURI(server: String, code: String, pins: [String]) -> String? {
    ActivationCode(code).map { ActivationURI(server: server, code: $0, pins: pins).text }
  }
}

extension ReferenceBackend: FleetRegistration {
  package static let registrationPrefix = FleetURI.prefix

  package static func isRegistration(_ uri: String) -> Bool {
    uri.drop(while: \.isWhitespace).lowercased().hasPrefix("\(FleetURI.scheme):")
  }

  package func register(_ request: EnrollmentRequest) async throws -> TokenServerID {
    let uri = try FleetURI(parsing: request.uri)
    return try await enrollment(for: request).register(
      uri, trust: context.trust(for: request, pins: uri.pins), capabilities: capabilities)
  }
}

extension ReferenceBackend: FormerAccounts {
  package static func upgraded(_ former: AccountRecord) throws(StateStoreError) -> AccountRecord {
    if former.secrets.count == 0 { return former }
    return try AccountCredentials(former: former).stored(in: former)
  }
}

extension ReferenceServerClient: UserSessions, Deregistration, Disenrollment, TimeSource {}

extension ReferenceServerClient: SessionCalls {
  package func authorize(
    _ request: HTTPRequest, in session: UserSession, nonce: String?
  ) async throws(TokenServerError) -> HTTPRequest {
    try await client.authorized(request, with: session.accessToken, nonce: nonce)
  }
}

extension ActivationURI.ParseError: ReportedError {
  package var category: ErrorCategory { .badData }
}

extension WireError: ReportedError {
  package var category: ErrorCategory { .badData }
}

extension ApprovalCapabilities {
  init(_ board: BoardCapabilities) {
    self.init(
      display: board.hasDisplay ? .text : .none, keypad: board.hasKeypad, button: true,
      led: board.hasColorLED ? .rgb : .mono)
    readBack = board.hasKeypad
  }

  /// With the authenticators that can be used now.
  func with(_ drivers: AuthenticatorDrivers) -> ApprovalCapabilities {
    var capabilities = self
    capabilities.biometric = drivers.usable(as: .biometric)
    capabilities.custom = drivers.usable(as: .custom)
    return capabilities
  }
}
