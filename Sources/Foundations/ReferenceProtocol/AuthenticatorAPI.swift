// SPDX-License-Identifier: Apache-2.0

// The bodies of requests about a profile's authenticators, base `/device/v1/profiles/{pid}/authenticators`. A server
// that has them says so in `DeviceConfiguration.authenticators`.

/// What an authenticator is. A kind of a newer server is `other`: this device cannot use it.
package enum AuthenticatorKind: String, Codable, Sendable {
  case pin, biometric, custom, other

  package init(from decoder: any Decoder) throws {
    self = Self(rawValue: try decoder.singleValueContainer().decode(String.self)) ?? .other
  }
}

/// `GET …/authenticators`, as the device: the PIN first, if the profile has one, then the others by identifier. It
/// lists what is registered, and what the server offers and the device has announced (`ApprovalCapabilities`).
package struct AuthenticatorList: Codable, Sendable, Equatable {
  package var authenticators: [AuthenticatorEntry]

  package init(authenticators: [AuthenticatorEntry]) { self.authenticators = authenticators }
}

package struct AuthenticatorEntry: Codable, Sendable, Equatable {
  /// The identifier of the PIN.
  package static let pinIdentifier = "pin"

  package var identifier: String
  /// For display, from the server's configuration.
  package var name: String
  package var type: AuthenticatorKind
  package var registered: Bool
  /// Whether it can be used or registered now: the server offers it, and the device has announced it.
  package var supported: Bool

  package init(identifier: String, name: String, type: AuthenticatorKind, registered: Bool, supported: Bool) {
    self.identifier = identifier
    self.name = name
    self.type = type
    self.registered = registered
    self.supported = supported
  }
}

/// The result of the server's script for a custom authenticator.
package struct CustomInfo: Codable, Sendable, Equatable {
  /// 2000 to 2999: accepted. 4000 to 4999: failed, may be tried again. 5000 to 5999: failed, the authenticator is
  /// deregistered. 3000 to 3999: the script could not be run, or gave no result.
  package var status: Int
  /// For the program at the device; its meaning is the script's.
  package var data: String

  package init(status: Int, data: String) {
    self.status = status
    self.data = data
  }
}

/// `POST …/authenticators/{aid}/registrations`, as the user, who has logged in with the PIN, with an `Idempotency-Key`,
/// which becomes the ID of the registration. `201` with an `AuthenticatorRegistration`. The same key and body again,
/// after a lost response, give a new `sealed_token` for the same registration; the script is not asked again.
package struct AuthenticatorRegistrationRequest: Codable, Sendable, Equatable {
  /// For a biometric authenticator: a `KnowledgeAssertion` of the PIN, whose audience is the request's URL. It counts
  /// as a PIN attempt.
  package var assertion: String?
  /// Base64 OpenPGP certificate, created for this exchange.
  package var ephemeralCertificate: String
  /// For a custom authenticator: Base64, at most 4096 bytes decoded, for the server's script.
  package var data: String?

  enum CodingKeys: String, CodingKey {
    case assertion, data
    case ephemeralCertificate = "ephemeral_certificate"
  }

  package init(assertion: String?, ephemeralCertificate: String, data: String? = nil) {
    self.assertion = assertion
    self.ephemeralCertificate = ephemeralCertificate
    self.data = data
  }
}

/// A registration that must be activated before it expires.
package struct AuthenticatorRegistration: Codable, Sendable, Equatable {
  package var registrationID: String
  /// Base64 OpenPGP message with the authenticator's own `RT`, 32 bytes.
  package var sealedToken: String
  /// The certificate of its signer: Base64 OpenPGP certificate.
  package var serverCertificate: String
  package var expiresInMs: Int64
  /// Set for a custom authenticator.
  package var customInfo: CustomInfo?

  enum CodingKeys: String, CodingKey {
    case registrationID = "registration_id"
    case sealedToken = "sealed_token"
    case serverCertificate = "server_certificate"
    case expiresInMs = "expires_in_ms"
    case customInfo = "custom_info"
  }

  package init(
    registrationID: String, sealedToken: String, serverCertificate: String, expiresInMs: Int64,
    customInfo: CustomInfo?
  ) {
    self.registrationID = registrationID
    self.sealedToken = sealedToken
    self.serverCertificate = serverCertificate
    self.expiresInMs = expiresInMs
    self.customInfo = customInfo
  }
}

/// `POST …/authenticators/{aid}/registrations/{id}/activation`, as the device, signed by the authenticator's key with
/// the registration's ID as nonce. `204`; idempotent for the same registration. From then on the authenticator is
/// registered.
package struct AuthenticatorActivation: Codable, Sendable, Equatable {
  package var assertion: String

  package init(assertion: String) { self.assertion = assertion }
}

/// `GET …/authenticators/{aid}/registrations/{id}`, as the device: reports after a crash whether the activation
/// arrived.
package struct AuthenticatorRegistrationStatus: Codable, Sendable, Equatable {
  package enum State: String, Codable, Sendable {
    case pending, registered
    /// Expired, replaced, deregistered or unknown.
    case void
  }

  package var state: State

  package init(state: State) { self.state = state }
}

/// `POST …/authenticators/{aid}/deregistration`, as the user, who has logged in with the PIN or with this
/// authenticator. `204`; idempotent.
package struct AuthenticatorDeregistration: Codable, Sendable, Equatable {
  /// For a custom authenticator: Base64, at most 4096 bytes decoded. The reference server has no script for it.
  package var data: String?

  package init(data: String? = nil) { self.data = data }
}
