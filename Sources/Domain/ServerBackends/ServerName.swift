// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

extension EnrollmentRegistry {
  /// Checks that a new server does not replace one of another kind, whose accounts would lose what only that kind does
  /// for them, such as their locks. A record that an enrollment which failed has left may be replaced; a registration
  /// of this device may not: its server knows this device by it, before it has an account, too.
  /// - Throws: `TokenServerError.alreadyEnrolled`, `StateStoreError`.
  package func requireNoOtherKind(of server: TokenServerID, than kind: String) throws {
    guard let other = try servers().first(where: { $0.id == server && $0.kind != kind }) else { return }
    let isUsed = try accounts().contains { $0.server == server }
    guard isUsed || other.registration != .unregistered else { return }
    throw TokenServerError.alreadyEnrolled("\(server) is known as a token server of another kind")
  }
}
