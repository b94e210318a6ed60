// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

// The fuzzer compiles this file in one module with the core's parsers.
#if canImport(TokenServerCore)
  import TokenServerCore
#endif

/// A request of an authenticated device to the token endpoint.
enum TokenRequest: Sendable, Equatable {
  case clientCredentials
  /// - Parameter ephemeralCertificate: the unchecked Base64 text from the form.
  case activation(code: String, profileID: ProfileID, ephemeralCertificate: String?)
  case logIn(assertion: String, profileID: ProfileID)
  case logInWithAuthenticator(AuthenticatorLogin)

  enum ParseError: Error, Equatable, Sendable {
    case unsupportedGrant
    /// The missing or invalid parameter, as a sentence.
    case invalid(String)
  }

  init(_ form: Form) throws(ParseError) {
    switch form["grant_type"] {
    case Grant.clientCredentials: self = .clientCredentials
    case Grant.preAuthorizedCode: self = try Self.activation(form)
    case Grant.jwtBearer:
      guard let assertion = form["assertion"], let profileID = form["profile_id"] else {
        throw .invalid("assertion and profile_id are needed.")
      }
      self = .logIn(assertion: assertion, profileID: ProfileID(profileID))
    case Grant.biometric: self = .logInWithAuthenticator(try AuthenticatorLogin(form, isBiometric: true))
    case Grant.customAuthenticator: self = .logInWithAuthenticator(try AuthenticatorLogin(form, isBiometric: false))
    case nil: throw .invalid("grant_type is missing.")
    default: throw .unsupportedGrant
    }
  }

  /// A login with an authenticator other than the PIN.
  struct AuthenticatorLogin: Sendable, Equatable {
    let assertion: String
    let profileID: ProfileID
    let authenticator: String
    let isBiometric: Bool
    /// For the script of a custom authenticator; empty for a biometric one.
    let data: [UInt8]

    fileprivate init(_ form: Form, isBiometric: Bool) throws(ParseError) {
      guard let assertion = form["assertion"], let profileID = form["profile_id"],
        let authenticator = form["authenticator"]
      else { throw .invalid("assertion, profile_id and authenticator are needed.") }
      guard let data = CustomData.parse(isBiometric ? nil : form["data"]) else {
        throw .invalid("data must be Base64 of at most \(AuthenticatorClaim.largestData) bytes.")
      }
      self.assertion = assertion
      self.profileID = ProfileID(profileID)
      self.authenticator = authenticator
      self.isBiometric = isBiometric
      self.data = data
    }
  }

  private static func activation(_ form: Form) throws(ParseError) -> TokenRequest {
    guard let code = form["pre-authorized_code"], let profileID = form["profile_id"] else {
      throw .invalid("pre-authorized_code and profile_id are needed.")
    }
    guard profileID.utf8.count == 6, profileID.allSatisfy({ $0.isASCII && ($0.isUppercase || $0.isNumber) }) else {
      throw .invalid("profile_id must be 6 characters of A-Z and 0-9.")
    }
    return .activation(
      code: code, profileID: ProfileID(profileID), ephemeralCertificate: form["ephemeral_certificate"])
  }
}
