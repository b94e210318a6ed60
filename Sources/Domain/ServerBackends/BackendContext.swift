// SPDX-License-Identifier: Apache-2.0
package import Cryptography
package import HTTP
package import MobileAuth

/// Everything that a backend may use of this token.
package struct BackendContext: Sendable {
  package let store: any BackendStore
  /// Its events are those that no client reports.
  package let environment: TokenEnvironment
  package let makeHTTPTransport: @Sendable (ServerTrust) -> any HTTPTransport
  /// The same for enrollments, whose requests are not repeated.
  package var makeEnrollmentTransport: @Sendable (ServerTrust) -> any HTTPTransport
  /// The earliest possible present time for certificate checks, in Unix seconds.
  package let earliestNow: Int64
  /// A PEM file with certificate authorities in addition to the system's.
  package var authorities: String?
  /// Nil if the board is not known.
  package var board: BoardCapabilities?
  package var drivers = AuthenticatorDrivers()
  package var unlockedTokens = UnlockedTokens()
  package var settings = BackendSettings()
  package var keyDerivation = Scrypt.Parameters.standard
  /// Verifies PINs that the server does not verify; nil on a board without a keypad.
  package var pinVerifier: (any PINVerifier)?
  package var hintBroker: (any HintBroker)?

  package init(
    store: any BackendStore, in environment: TokenEnvironment, earliestNow: Int64,
    makeHTTPTransport: @escaping @Sendable (ServerTrust) -> any HTTPTransport
  ) {
    self.store = store
    self.environment = environment
    self.earliestNow = earliestNow
    self.makeHTTPTransport = makeHTTPTransport
    makeEnrollmentTransport = makeHTTPTransport
  }
}

/// The parts of a board that servers can be notified of.
package struct BoardCapabilities: Sendable, Equatable {
  package var hasKeypad: Bool
  package var hasColorLED: Bool
  /// Whether a display shows what the server has signed of the request on the panel.
  package var hasDisplay: Bool

  package init(hasKeypad: Bool, hasColorLED: Bool, hasDisplay: Bool = false) {
    self.hasKeypad = hasKeypad
    self.hasColorLED = hasColorLED
    self.hasDisplay = hasDisplay
  }
}

extension BackendContext {
  /// How the server of an enrollment is authenticated.
  /// - Parameter pins: the pins in the URI; without any, those in the request count.
  package func trust(for request: EnrollmentRequest, pins: [String] = []) -> ServerTrust {
    var trust = ServerTrust(
      pins: pins.isEmpty ? request.pins : pins, authorityFile: request.authorities ?? authorities,
      earliestNow: earliestNow)
    trust.dropsPins = request.dropsPins
    return trust
  }

  /// The HTTP client for an enrolled server. While the board's clock is not set, certificates are checked at the latest
  /// time that this server has reported.
  /// - Parameters:
  ///   - pins: the pins of its enrollment.
  ///   - addresses: where its requests go; nil for any address.
  package func http(
    to server: TokenServerID, at addresses: [String]?, pins: [String]
  ) throws(StateStoreError) -> any HTTPTransport {
    let trust = ServerTrust(
      pins: pins, authorityFile: authorities, earliestNow: earliestNow,
      vouchedNow: try store.latestKnownTime(of: server))
    return makeHTTPTransport(addresses.map { trust.limited(to: $0) } ?? trust)
  }

  /// What stands for the biometric checks of a server.
  /// - Parameter accounts: those for which it asks for such checks.
  package func standIns(
    of accounts: [AccountRecord], at server: TokenServerRecord, in environment: TokenEnvironment
  ) -> StandIns {
    let host = HTTPSAddress(server.url)?.origin.host ?? server.id.text
    return StandIns(
      of: accounts, at: server.id, host: host, registry: store, drivers: drivers, unlocked: unlockedTokens,
      in: environment)
  }

  /// Lets the user choose a PIN that this token verifies, and stores it; nil without a keypad.
  package func pinPrompter(for request: EnrollmentRequest) -> PINPrompter? {
    guard let chooser = request.pinChooser else { return nil }
    return pinPrompter(choosing: chooser.choose)
  }
}
