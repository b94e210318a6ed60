// SPDX-License-Identifier: Apache-2.0
import MobileAuth

/// Biometric authenticators: the PIN proves the user who registers one.
extension AccountAuthenticators {
  /// Registers what the driver has read, with the PIN.
  func register(
    _ id: String, with data: AuthenticatorData, in session: UserSession, on panel: any Panel,
    _ progress: @escaping AccountPINs.Progress
  ) async throws {
    let length = try await server.pinLength(of: account.id)
    progress("type the PIN of \(account.id) on the keypad, then Enter, to register \(id)")
    do {
      try await pins.withPIN(
        of: account, server.enrollments, for: .registration, length: length, on: panel, progress
      ) { pin in
        // Each attempt is another one for the server.
        let use = try server.use(id, of: account.id, for: .register)
        try await server.registerBiometric(use, with: data, typing: pin, in: session)
      }
    } catch let fault as TokenServerError { throw sessionEnded(by: fault) }
    await panel.show(.confirmed)
  }
}
