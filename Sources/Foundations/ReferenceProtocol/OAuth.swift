// SPDX-License-Identifier: Apache-2.0
/// Authorization server metadata (RFC 8414), at `/.well-known/oauth-authorization-server`.
package struct ServerMetadata: Codable, Sendable, Equatable {
  package var issuer: String
  package var tokenEndpoint: String
  package var registrationEndpoint: String
  package var revocationEndpoint: String
  /// For resource servers that check access tokens (RFC 7662); nil for an earlier server.
  package var introspectionEndpoint: String?
  /// Base URL of the device API, without a trailing slash.
  package var approvalDeviceAPI: String

  enum CodingKeys: String, CodingKey {
    case issuer
    case tokenEndpoint = "token_endpoint"
    case registrationEndpoint = "registration_endpoint"
    case revocationEndpoint = "revocation_endpoint"
    case introspectionEndpoint = "introspection_endpoint"
    case approvalDeviceAPI = "approval_device_api"
  }

  package init(issuer: String) {
    self.issuer = issuer
    tokenEndpoint = issuer + "/oauth/token"
    registrationEndpoint = issuer + "/oauth/register"
    revocationEndpoint = issuer + "/oauth/revoke"
    introspectionEndpoint = issuer + "/oauth/api/v2/token/introspect"
    approvalDeviceAPI = issuer + "/device/v1"
  }

  package static let path = "/.well-known/oauth-authorization-server"
}

/// The capabilities of the hardware (member of the registration), so that the server requests only supported methods.
package struct ApprovalCapabilities: Codable, Sendable, Equatable {
  package enum Display: String, Codable, Sendable { case none, text, console }
  package enum LED: String, Codable, Sendable { case mono, rgb }

  package var display: Display
  package var keypad: Bool
  package var button: Bool
  package var led: LED
  /// The identifiers of the biometric authenticators that the device can use now.
  package var biometric: [String]
  /// The identifiers of the custom authenticators that the device can use now.
  package var custom: [String]
  /// Whether the device lets the user type the digits of a request (`ApprovalRequest.readBack`); nil stands for false.
  package var readBack: Bool?

  enum CodingKeys: String, CodingKey {
    case display, keypad, button, led, biometric, custom
    case readBack = "read_back"
  }

  package init(display: Display, keypad: Bool, button: Bool, led: LED, biometric: [String] = [], custom: [String] = [])
  {
    self.display = display
    self.keypad = keypad
    self.button = button
    self.led = led
    self.biometric = biometric
    self.custom = custom
  }
}

/// `POST /oauth/register` (RFC 7591), with an activation code or a fleet token as Bearer token. Idempotent for the same
/// code and key, so a crash during enrollment leaves no unused client.
package struct RegistrationRequest: Codable, Sendable, Equatable {
  package var clientName: String
  package var softwareID: String
  package var softwareVersion: String
  package var tokenEndpointAuthMethod: String
  package var grantTypes: [String]
  package var jwks: JWKSet
  package var approvalCapabilities: ApprovalCapabilities
  /// What the board is marked with; at most 64 bytes. Nothing vouches for it.
  package var boardSerial: String?

  enum CodingKeys: String, CodingKey {
    case boardSerial = "board_serial"
    case clientName = "client_name"
    case softwareID = "software_id"
    case softwareVersion = "software_version"
    case tokenEndpointAuthMethod = "token_endpoint_auth_method"
    case grantTypes = "grant_types"
    case jwks
    case approvalCapabilities = "approval_capabilities"
  }

  package init(
    clientName: String, softwareID: String, softwareVersion: String, key: JWK, capabilities: ApprovalCapabilities,
    boardSerial: String? = nil
  ) {
    self.clientName = clientName
    self.softwareID = softwareID
    self.softwareVersion = softwareVersion
    tokenEndpointAuthMethod = "private_key_jwt"
    grantTypes = [Grant.clientCredentials, Grant.preAuthorizedCode, Grant.jwtBearer]
    jwks = JWKSet(keys: [key])
    approvalCapabilities = capabilities
    self.boardSerial = boardSerial
  }
}

/// `201` to a registration.
package struct RegistrationResponse: Codable, Sendable, Equatable {
  /// 64 upper-case hexadecimal digits; portals call it `device_id`.
  package var clientID: String
  /// The client configuration endpoint (RFC 7592): `DELETE` with the device's access token deregisters the device.
  package var registrationClientURI: String

  enum CodingKeys: String, CodingKey {
    case clientID = "client_id"
    case registrationClientURI = "registration_client_uri"
  }

  package init(clientID: String, registrationClientURI: String) {
    self.clientID = clientID
    self.registrationClientURI = registrationClientURI
  }
}

/// `grant_type` values of the token endpoint.
package enum Grant {
  package static let clientCredentials = "client_credentials"
  /// OpenID4VCI: form members `pre-authorized_code` and `profile_id`, and if the server requires a PIN
  /// `ephemeral_certificate` (Base64): an OpenPGP certificate created for this exchange, to which `RT` is encrypted.
  package static let preAuthorizedCode = "urn:ietf:params:oauth:grant-type:pre-authorized_code"
  /// RFC 7523 §2.1: form members `assertion`, a `KnowledgeAssertion` for the token endpoint, and `profile_id`.
  /// Repeating the same assertion counts as the same attempt.
  package static let jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"
  /// Form members `assertion`, signed by the key of a biometric authenticator for the token endpoint, `profile_id` and
  /// `authenticator`, its identifier. Repeating the same assertion counts as the same attempt.
  package static let biometric = "urn:approval-token:grant:biometric"
  /// As `biometric`, for a custom authenticator, with `data`: Base64, at most 4096 bytes decoded.
  package static let customAuthenticator = "urn:approval-token:grant:custom-authenticator"
  /// RFC 7523 §2.2: value of `client_assertion_type`.
  package static let clientAssertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
}

/// `200` of the token endpoint (RFC 6749 §5.1), always DPoP-bound (RFC 9449 §5).
package struct AccessTokenResponse: Codable, Sendable, Equatable {
  package enum Scope: String, Codable, Sendable { case device, user }

  package var accessToken: String
  package var tokenType: String
  package var expiresIn: Int
  package var scope: Scope
  /// Set only for `user`.
  package var profileID: String?
  /// The user's name at the server; set by an activation.
  package var userID: String?
  /// Base64 OpenPGP message with `RT`, 32 bytes; set while no PIN was chosen for the profile.
  package var sealedToken: String?
  /// With `sealedToken`: the certificate of its signer (Base64 OpenPGP certificate).
  package var serverCertificate: String?
  /// With `sealedToken`: the `nonce` of the assertion that activates the PIN.
  package var pinNonce: String?
  /// After a login with a custom authenticator: the result of the script.
  package var customInfo: CustomInfo?

  enum CodingKeys: String, CodingKey {
    case accessToken = "access_token"
    case tokenType = "token_type"
    case expiresIn = "expires_in"
    case scope
    case profileID = "profile_id"
    case userID = "user_id"
    case sealedToken = "sealed_token"
    case serverCertificate = "server_certificate"
    case pinNonce = "pin_nonce"
    case customInfo = "custom_info"
  }

  package init(accessToken: String, expiresIn: Int, scope: Scope, profileID: String? = nil) {
    self.accessToken = accessToken
    tokenType = "DPoP"
    self.expiresIn = expiresIn
    self.scope = scope
    self.profileID = profileID
  }
}

/// Error body of the OAuth endpoints (RFC 6749 §5.2), with the number of the error catalog if there is one.
package struct OAuthError: Codable, Sendable, Equatable {
  package var error: String
  package var errorDescription: String?
  package var errorCode: Int?
  /// With 9009 and 9003.
  package var maxFailureCount: Int?
  package var previousFailureCount: Int?
  package var remainingFailureCount: Int?
  /// With 9027: the result of the script.
  package var customInfo: CustomInfo?
  /// With 9030 and 9027: whether the server has deregistered the authenticator; nil stands for false.
  package var authenticatorRevoked: Bool?
  /// With 9002 and 9003: `RevocationNotice`s, Base64 OpenPGP messages.
  package var revocations: [String]?

  enum CodingKeys: String, CodingKey {
    case error, revocations
    case customInfo = "custom_info"
    case authenticatorRevoked = "authenticator_revoked"
    case errorDescription = "error_description"
    case errorCode = "error_code"
    case maxFailureCount = "max_failure_count"
    case previousFailureCount = "previous_failure_count"
    case remainingFailureCount = "remaining_failure_count"
  }

  package init(_ error: String, _ description: String? = nil, code: Int? = nil) {
    self.error = error
    errorDescription = description
    errorCode = code
  }

  /// The error code for a missing or stale nonce (RFC 9449 §8): retry with the nonce of the `DPoP-Nonce` header.
  package static let useDPoPNonce = "use_dpop_nonce"

  /// The error code for client credentials that the server does not accept (RFC 6749 §5.2).
  package static let invalidClient = "invalid_client"
}
