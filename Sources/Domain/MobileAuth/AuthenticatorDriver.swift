// SPDX-License-Identifier: Apache-2.0
package import Secrets

/// Produces the data of one authenticator on this token: the keypad, a reader, or another program.
package protocol AuthenticatorDriver: Sendable {
  /// The identifier of the authenticator.
  var authenticator: String { get }
  var kind: Authenticator.Kind { get }
  var input: DriverInput { get }
  /// Whether it can be asked now. Quick: neither waits nor starts anything.
  var isAvailable: Bool { get }

  /// Asks for the data of one use. The stream ends after the first event that `isAnswer`; ending its consumption
  /// cancels the use. Silent if the data comes from the keypad.
  func events(for call: DriverCall) -> AsyncStream<DriverEvent>
}

/// How the user operates an authenticator.
package enum DriverInput: Sendable, Equatable {
  /// A code of 1 to `PIN.longest` digits, typed on the keypad: the panel takes it.
  case keypadCode
  /// Something outside of the panel.
  /// - Parameter hold: whether a hold of the button is required before the driver is asked, because the authenticator
  ///   itself does not prove an act of the user.
  case external(hold: Bool)
}

/// One use of an authenticator, for its driver.
package struct DriverCall: Sendable, Equatable {
  package enum Step: String, Sendable, CaseIterable { case register, authenticate, deregister }

  package let step: Step
  /// The host name of the token server.
  package let server: String
  /// The account's name on this token.
  package let account: String
  /// The identifier of the authenticator.
  package let authenticator: String
  /// 32 bytes that the data can sign: they are different for each use, and the server can compute them.
  package let challenge: [UInt8]
  /// What the driver returned at the registration, for itself; empty for nothing.
  package let registration: [UInt8]

  package init(
    step: Step, server: String, account: String, authenticator: String, challenge: [UInt8], registration: [UInt8] = []
  ) {
    self.step = step
    self.server = server
    self.account = account
    self.authenticator = authenticator
    self.challenge = challenge
    self.registration = registration
  }
}

/// The data of an authenticator for the server.
package struct AuthenticatorData: Sendable, Equatable {
  /// The maximum number of bytes for the server.
  package static let largest = 4096
  /// The maximum number of bytes that the token keeps for the driver.
  package static let largestRegistration = 32_768

  package let bytes: SecretBytes
  /// Of a registration: what the driver gets back with each later call.
  package let registration: [UInt8]

  package init(_ bytes: SecretBytes, registration: [UInt8] = []) {
    self.bytes = bytes
    self.registration = registration
  }

  /// The digits as the server's script gets them, in ASCII.
  package init(_ code: EnteredDigits) { self.init(code.bytes) }

  package static func == (one: Self, other: Self) -> Bool {
    SecretBytes.constantTimeEqual(one.bytes, other.bytes) && one.registration == other.registration
  }
}

package enum DriverEvent: Sendable, Equatable {
  /// What the user has to do, for a display: "touch the key".
  case waiting(String)
  /// A try that counts for nothing, and why; the driver goes on.
  case retry(String)
  case data(AuthenticatorData)
  /// The authenticator refuses, and why: the request is denied.
  case canceled(String)
  /// The PIN is wanted instead.
  case fallback
  /// The driver could not be used, and why. This decides nothing about the request.
  case failed(String)
  /// The driver takes no more tries for this use, and why. This decides nothing about the request.
  /// - Parameter revokes: whether the registration must end: another person may have tried.
  case exhausted(String, revokes: Bool)

  /// Whether this is the end of a use.
  package var isAnswer: Bool {
    switch self {
    case .waiting, .retry: false
    case .data, .canceled, .fallback, .failed, .exhausted: true
    }
  }
}

/// The code of a custom authenticator, typed on the keypad.
package struct KeypadCodeDriver: AuthenticatorDriver {
  package let authenticator: String
  package var kind: Authenticator.Kind { .custom }
  package var input: DriverInput { .keypadCode }
  package var isAvailable: Bool { true }

  package init(_ authenticator: String) { self.authenticator = authenticator }

  package func events(for call: DriverCall) -> AsyncStream<DriverEvent> { AsyncStream { _ in } }
}

/// The drivers of this token, one for each authenticator.
package struct AuthenticatorDrivers: Sendable {
  /// The maximum number of drivers.
  package static let most = 16

  private let all: [String: any AuthenticatorDriver]

  /// - Parameter drivers: of two for the same authenticator, the first one is used.
  package init(_ drivers: [any AuthenticatorDriver] = []) {
    all = Dictionary(drivers.map { ($0.authenticator, $0) }) { first, _ in first }
  }

  package subscript(authenticator: String) -> (any AuthenticatorDriver)? { all[authenticator] }

  /// The driver, if it can be used now for an authenticator of this kind.
  package func usable(_ authenticator: String, as kind: Authenticator.Kind) -> (any AuthenticatorDriver)? {
    all[authenticator].flatMap { $0.kind == kind && $0.isAvailable ? $0 : nil }
  }

  /// The identifiers of the authenticators of this kind that can be used now, sorted.
  package func usable(as kind: Authenticator.Kind) -> [String] {
    all.keys.filter { usable($0, as: kind) != nil }.sorted()
  }
}
