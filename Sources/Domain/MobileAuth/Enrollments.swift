// SPDX-License-Identifier: Apache-2.0

/// Identifies one enrollment of an account, or one registration of this device at a server: an account that is enrolled
/// again under the same name has another one.
public struct EnrollmentID: Hashable, Sendable {
  public let text: String
  public init(_ text: String) { self.text = text }
}

/// The enrollments that a client was made for. What its server reports concerns these enrollments only, and not those
/// that were made later under the same names.
public struct Enrollments: Sendable, Equatable {
  /// The registration of this device at the server.
  public let server: EnrollmentID
  public let accounts: [AccountID: EnrollmentID]

  public init(server: EnrollmentID, accounts: [AccountID: EnrollmentID]) {
    self.server = server
    self.accounts = accounts
  }

  /// - Parameter accounts: the accounts that the client was made for; each name once.
  public init(_ server: TokenServerRecord, _ accounts: [AccountRecord]) {
    self.server = server.registration
    self.accounts = Dictionary(accounts.map { ($0.id, $0.enrollment) }) { first, _ in first }
  }
}
