// SPDX-License-Identifier: Apache-2.0
package import HTTP
package import MobileAuth
package import ReferenceProtocol
import Secrets
package import ServerBackends

/// The reference token server.
package struct ReferenceBackend: ServerBackend {
  package static let kind = ReferenceServerClient.kind
  package static let displayName = "the reference token server"
  package static let uriPrefixes = ["approvaltoken://activate?"]
  package static let enrollmentOptions: Set<EnrollmentOption> = [.origins]
  package static let namesAccountsAfterUsers = true

  private let context: BackendContext

  package init(_ context: BackendContext) { self.context = context }

  package static func recognizes(_ uri: String) -> Bool {
    uri.drop(while: \.isWhitespace).lowercased().hasPrefix("approvaltoken:")
  }

  package static func form(of uri: String) throws -> EnrollmentForm {
    _ = try ActivationURI(parsing: uri)
    return EnrollmentForm(enrollmentOptions)
  }

  package func enroll(_ request: EnrollmentRequest) async throws -> AccountRecord {
    let uri = try ActivationURI(parsing: request.uri)
    let setup = request.pinChooser.map { chooser in
      Enrollment.PINSetup(
        binding: context.store.pinBinding, parameters: context.keyDerivation, choose: chooser.choose)
    }
    let enrollment = Enrollment(
      registry: context.store, in: context.environment, pinPrompter: setup, deviceName: context.settings.deviceName,
      progress: request.progress, makeHTTPTransport: context.makeHTTPTransport)
    let board = context.board ?? BoardCapabilities(hasKeypad: false, hasColorLED: true)
    return try await enrollment.enroll(
      uri, name: request.name, trust: context.trust(for: request, pins: uri.pins),
      capabilities: ApprovalCapabilities(board, keypadCodes: context.keypadCodes), origins: request.allowedOrigins)
  }

  package func client(
    for server: TokenServerRecord, accounts: [AccountRecord], in environment: TokenEnvironment
  ) throws -> (any TokenServerClient)? {
    try ReferenceServerClient(
      server, accounts: accounts, registry: context.store, pinBinding: context.store.pinBinding,
      http: try context.http(to: server.id, pins: ReferenceServerClient.pins(of: server)), in: environment,
      broker: context.hintBroker,
      capabilities: context.board.map { ApprovalCapabilities($0, keypadCodes: context.keypadCodes) })
  }
}

extension ReferenceBackend: FormerAccounts {
  package static func upgraded(_ former: AccountRecord) throws(StateStoreError) -> AccountRecord {
    if former.secrets.count == 0 { return former }
    return try AccountCredentials(former: former).stored(in: former)
  }
}

extension ReferenceServerClient: UserSessions, Deregistration, TimeSource {}

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
  /// - Parameter keypadCodes: `BackendContext.keypadCodes`.
  init(_ board: BoardCapabilities, keypadCodes: [String] = []) {
    self.init(
      display: board.hasDisplay ? .text : .none, keypad: board.hasKeypad, button: true,
      led: board.hasColorLED ? .rgb : .mono, custom: board.hasKeypad ? keypadCodes : [])
  }
}
