// SPDX-License-Identifier: Apache-2.0

/// Identifies one enrollment of an account, or one registration of this device at a server: an account that is enrolled
/// again under the same name has another one.
package struct EnrollmentID: Hashable, Sendable {
  package let text: String
  package init(_ text: String) { self.text = text }

  /// Of a server at which this device has no registration: it has not confirmed one yet, or its kind has none. Without
  /// accounts, such a record is not needed.
  package static let unregistered = EnrollmentID("")
}

/// The enrollments that a client was made for. What its server reports concerns these enrollments only, and not those
/// that were made later under the same names.
package struct Enrollments: Sendable, Equatable {
  /// The registration of this device at the server.
  package let server: EnrollmentID
  package let accounts: [AccountID: EnrollmentID]

  package init(server: EnrollmentID, accounts: [AccountID: EnrollmentID]) {
    self.server = server
    self.accounts = accounts
  }

  /// - Parameter accounts: the accounts that the client was made for; each name once.
  package init(_ server: TokenServerRecord, _ accounts: [AccountRecord]) {
    self.server = server.registration
    self.accounts = Dictionary(accounts.map { ($0.id, $0.enrollment) }) { first, _ in first }
  }
}
