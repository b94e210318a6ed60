// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Secrets
import ServerBackends

/// A kind of server that is not part of the program: `file-token:PATH#USER`.
struct FileBackend: ServerBackend {
  static let kind = "file"
  static let displayName = "files"
  static let uriPrefixes = ["file-token:"]

  private let context: BackendContext

  init(_ context: BackendContext) { self.context = context }

  static func recognizes(_ uri: String) -> Bool { uri.hasPrefix("file-token:") }

  static func form(of uri: String) throws -> EnrollmentForm {
    _ = try parse(uri)
    return EnrollmentForm()
  }

  private static func parse(_ uri: String) throws -> (path: String, user: String) {
    let parts = uri.dropFirst("file-token:".count).split(separator: "#").map(String.init)
    guard parts.count == 2 else { throw BackendError(.badData, "a URI is file-token:PATH#USER") }
    return (parts[0], parts[1])
  }

  func enroll(_ request: EnrollmentRequest) async throws -> AccountRecord {
    let (path, user) = try Self.parse(request.uri)
    let server = TokenServerRecord(
      id: TokenServerID("file"), kind: Self.kind, url: path, registration: context.environment.makeEnrollmentID(),
      secrets: SecretBytes(copying: []))
    let account = AccountRecord(
      id: AccountID(request.name ?? user), server: server.id, profile: user, stage: .active,
      enrollment: context.environment.makeEnrollmentID(), secrets: SecretBytes(copying: []))
    request.progress("registering \(user)")
    try context.store.put(server)
    try FileServer(path: path).change { $0.pending[user] = [] }
    try context.store.put(account, context.environment.auditEntry(.enrolled, account: account.id))
    return account
  }

  func client(
    for server: TokenServerRecord, accounts: [AccountRecord], in environment: TokenEnvironment
  ) throws -> (any TokenServerClient)? {
    FileServerClient(
      id: server.id, enrollments: Enrollments(server, accounts), server: FileServer(path: server.url),
      accounts: accounts, environment: environment)
  }
}
