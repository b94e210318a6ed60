// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// One kind of server: recognizes its enrollment URIs, enrolls accounts, and makes the clients of its servers.
///
/// What only some kinds can do is a protocol of its own, which the backend or its client adopts: `AccountLocks`,
/// `FirstPIN`, `FleetRegistration`, `FormerAccounts`, `LateConfirmation`, `MailboxAddressing`, `MessageHistory`,
/// `PushReceiver`, `ReachCheck`, `Reenrollment` and `TypedActivation` for the backend; `BiometricChecks`,
/// `Deregistration`, `Disenrollment`, `PollWaking`, `SessionCalls`, `TimeSource`, `UserAuthenticators` and
/// `UserSessions` for the client.
/// The service asks for the protocol, never for a concrete type.
package protocol ServerBackend: Sendable {
  /// The `kind` of `TokenServerRecord`. Stored: it must not change.
  static var kind: String { get }

  /// What its accounts belong to, for messages: "accounts of" it.
  static var displayName: String { get }

  /// How its enrollment URIs begin, and no other kind's, for messages.
  static var uriPrefixes: [String] { get }

  /// The schemes, in lower case, of URIs that carry a secret which outlives the enrollment. Such a URI is not accepted
  /// as a command-line argument.
  static var lastingSecretSchemes: Set<String> { get }

  /// The options that at least one enrollment URI of this kind accepts; see `form`.
  static var enrollmentOptions: Set<EnrollmentOption> { get }

  /// Whether an account that the user did not name is named after the user at the server, "ann@example.com", instead of
  /// its profile.
  static var namesAccountsAfterUsers: Bool { get }

  /// Whether the text is an enrollment URI of this kind, valid or not. At most one kind recognizes a text.
  static func recognizes(_ uri: String) -> Bool

  /// Parses a recognized URI and returns which options its enrollment accepts. Changes nothing.
  /// - Throws: the error that `enroll` would throw for the URI.
  static func form(of uri: String) throws -> EnrollmentForm

  /// One instance serves all servers of its kind, as long as the process runs.
  init(_ context: BackendContext)

  /// Enrolls an account, or resumes its enrollment: each step is durable before the server is notified of it.
  /// - Returns: the stored account.
  /// - Throws: `TokenServerError`, `StateStoreError`, `PanelDialog.EntryError`, or a `ReportedError`.
  func enroll(_ request: EnrollmentRequest) async throws -> AccountRecord

  /// Makes the client for a server of this kind. Connects to nothing.
  /// - Parameters:
  ///   - accounts: all accounts of the server, active or not.
  ///   - environment: receives the events that concern a single account.
  /// - Returns: nil for a kind whose accounts have no server, and therefore no requests.
  /// - Throws: `StateStoreError`.
  func client(
    for server: TokenServerRecord, accounts: [AccountRecord], in environment: TokenEnvironment
  ) throws -> (any TokenServerClient)?
}

extension ServerBackend {
  /// Default: none.
  package static var lastingSecretSchemes: Set<String> { [] }

  /// Default: none.
  package static var enrollmentOptions: Set<EnrollmentOption> { [] }

  /// Default: no.
  package static var namesAccountsAfterUsers: Bool { false }
}
