// SPDX-License-Identifier: Apache-2.0
import Boards
package import ControlProtocol
import CurlHTTP
package import HTTP
package import MobileAuth
package import ServerBackends
package import Vault

/// The backends of this process over its vault.
package struct Backends: Sendable {
  package let vault: Vault
  package let operations: AccountOperations

  /// - Parameter context: its store is the vault.
  init(_ vault: Vault, _ context: BackendContext, kinds: [any ServerBackend.Type] = Self.kinds) {
    self.vault = vault
    operations = AccountOperations(context, kinds: kinds)
  }

  /// For a command that runs without the service: the board is not known, and no PIN can be typed.
  package init(
    _ vault: Vault, authorities: String? = nil, in environment: TokenEnvironment = .system(),
    makeHTTPTransport: @escaping @Sendable (ServerTrust) -> any HTTPTransport = { CurlHTTPTransport(trust: $0) }
  ) {
    self.init(
      vault,
      BackendContext(vault, authorities: authorities, in: environment, makeHTTPTransport: makeHTTPTransport))
  }

  /// Between two attempts to enroll without a network.
  static let networkPause = Duration.seconds(2)

  var context: BackendContext { operations.context }
  var environment: TokenEnvironment { context.environment }

  /// Makes the client for a server; nil if accounts of its kind have no server.
  /// - Parameter report: called with the client's events.
  package func client(
    for server: TokenServerRecord, report: @escaping @Sendable (TokenEvent) -> Void = { _ in }
  ) throws -> (any TokenServerClient)? {
    try operations.client(for: server, report: report)
  }

  /// The clients for servers, without those that cannot be made: the others can be used.
  /// - Parameter failed: called with the error of each of these.
  func clients(
    for servers: [TokenServerRecord], report: @escaping @Sendable (TokenEvent) -> Void,
    failed: (TokenServerID, any Error) -> Void
  ) -> [any TokenServerClient] {
    servers.compactMap { server in
      do { return try client(for: server, report: report) } catch {
        failed(server.id, error)
        return nil
      }
    }
  }

  /// Fills in the fields of an account of a former vault.
  /// - Throws: `.corrupt` for a kind that this version does not know, and if the account cannot be decoded.
  @Sendable package static func upgraded(kind: String, _ former: AccountRecord) throws -> AccountRecord {
    guard let backend = kinds.first(where: { $0.kind == kind }) else {
      throw StateStoreError.corrupt(.kind(kind, former.server))
    }
    return try (backend as? any FormerAccounts.Type)?.upgraded(former) ?? former
  }

  package func accounts(at server: TokenServerRecord) throws(StateStoreError) -> [AccountRecord] {
    try vault.accounts().filter { $0.server == server.id }
  }

  /// The backends that receive push messages.
  var receivers: [any PushReceiver] { operations.backends.compactMap { $0 as? any PushReceiver } }

  /// Stores a push message of any kind of server.
  /// - Throws: the error of the first receiver, if none accepts the message.
  func accept(_ message: [UInt8]) throws -> PushAcceptance {
    var first: (any Error)?
    for receiver in receivers {
      do { return try receiver.accept(message) } catch { first = first ?? error }
    }
    throw first ?? CommandError(.usage, "no server of this token delivers push messages")
  }

  /// Rejects options that the URI's kind of server does not accept.
  func check(_ options: EnrollmentOptions) throws { try Self.check(options, among: operations.kinds) }

  /// Enrolls an account, or registers this device at the server of a URI with a fleet token. Without a network it tries
  /// again every `networkPause`, for at most `request.networkWait`.
  package func enrollWhenConnected(_ request: EnrollmentRequest) async throws -> EnrollmentResponse {
    let end = environment.now + request.networkWait
    while true {
      do {
        if let server = try await register(request) { return EnrollmentResponse(registeredAt: server.text) }
        return EnrollmentResponse(AccountResponse(try await enroll(request)))
      } catch TokenServerError.noNetwork(let why) {
        guard environment.now < end else { throw TokenServerError.noNetwork(why) }
      }
      request.waitsForNetwork(true)
      try await environment.sleep(for: Self.networkPause)
      request.waitsForNetwork(false)
    }
  }

  /// Registers this device at the server of a URI with a fleet token.
  /// - Returns: nil for a URI that enrolls an account.
  private func register(_ request: EnrollmentRequest) async throws -> TokenServerID? {
    let able = operations.backends.lazy.compactMap { $0 as? any FleetRegistration }
    return try await able.first { type(of: $0).isRegistration(request.uri) }?.register(request)
  }

  /// Enrolls an account at a server of the kind that recognizes the URI.
  private func enroll(_ request: EnrollmentRequest) async throws -> AccountRecord {
    guard let backend = operations.backends.first(where: { type(of: $0).recognizes(request.uri) }) else {
      throw CommandError(.badData, Self.notAnEnrollmentURI(operations.kinds))
    }
    let account = try await backend.enroll(request)
    guard request.name == nil, type(of: backend).namesAccountsAfterUsers else { return account }
    // The enrollment is complete: without a new name, too.
    return (try? operations.namedAfterUser(account)) ?? account
  }
}

extension BackendContext {
  init(
    _ vault: Vault, authorities: String?, in environment: TokenEnvironment,
    makeHTTPTransport: @escaping @Sendable (ServerTrust) -> any HTTPTransport = { CurlHTTPTransport(trust: $0) }
  ) {
    self.init(
      store: vault, in: environment, earliestNow: releaseTime, makeHTTPTransport: makeHTTPTransport)
    self.authorities = authorities
    settings.deviceName = hostName
    settings.boardSerial = boardSerial()
  }

  /// For the service on a board.
  init(
    _ vault: Vault, _ configuration: Configuration, _ board: RunningBoard, in environment: TokenEnvironment,
    makeHTTPTransport: @escaping @Sendable (ServerTrust) -> any HTTPTransport = { CurlHTTPTransport(trust: $0) }
  ) {
    self.init(
      vault, authorities: configuration.authorities, in: environment, makeHTTPTransport: makeHTTPTransport)
    settings = configuration.push.backends
    settings.deviceName = hostName
    settings.boardSerial = boardSerial()
    self.board = board.capabilities
    self.board?.hasDisplay = configuration.hasDisplay
    drivers = configuration.drivers(
      hasKeypad: board.profile.hasKeypad, simulated: board.simulatedAuthenticators)
    unlockedTokens = UnlockedTokens(lifetime: configuration.fingerprintLifetime)
    keyDerivation = board.keyDerivation
    pinVerifier = board.profile.hasKeypad ? StorePINVerifier(vault, in: environment) : nil
  }
}
