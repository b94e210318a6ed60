// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

extension EnrollmentRegistry {
  /// Checks that a new server does not replace one of another kind, whose accounts would lose what only that kind does
  /// for them, such as their locks.
  /// - Throws: `TokenServerError.alreadyEnrolled`, `StateStoreError`.
  package func requireNoOtherKind(of server: TokenServerID, than kind: String) throws {
    guard try servers().contains(where: { $0.id == server && $0.kind != kind }) else { return }
    throw TokenServerError.alreadyEnrolled("\(server) is known as a token server of another kind")
  }
}
