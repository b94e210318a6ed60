// SPDX-License-Identifier: Apache-2.0
package import Cryptography
package import Secrets

/// `KK`, the knowledge key: a signing key that a token can derive only from the correct PIN. The server stores the
/// public key; the token stores no part of it.
package struct KnowledgeKey: Sendable {
  private let key: Ed25519.PrivateKey

  /// - Parameters:
  ///   - refreshToken: `RT`, 32 bytes, as decrypted with a PIN. A wrong PIN results in another key, not in an error.
  ///   - authenticator: the identifier of the authenticator whose `RT` it is; nil for the PIN. A client ID has 64
  ///     characters and a profile ID 6, so that the salts of two authenticators differ.
  package init(
    refreshToken: SecretBytes, clientID: String, profileID: String, authenticator: String? = nil
  ) throws(CryptographyError) {
    let purpose = authenticator == nil ? "knowledge" : "authenticator"
    let seed = HKDF.derive(
      refreshToken, salt: Array((clientID + profileID + (authenticator ?? "")).utf8),
      info: "approval-token/\(purpose)/v1")
    key = try Ed25519.PrivateKey(seed: seed)
  }

  /// The public key, computed by the server, which created `RT`.
  package var publicKey: Ed25519.PublicKey { get throws(CryptographyError) { try key.publicKey } }

  /// Creates the `pin_proof` of an answer, over the exact request, its current nonce and the decision.
  /// - Returns: 64 bytes.
  package func proof(_ claim: ApprovalClaim) throws(CryptographyError) -> [UInt8] {
    try key.signature(for: claim.signedBytes)
  }

  /// Creates the `authenticator_proof` of an answer.
  /// - Returns: 64 bytes.
  package func proof(_ claim: AuthenticatorClaim) throws(CryptographyError) -> [UInt8] {
    try key.signature(for: claim.signedBytes)
  }

  /// Creates an assertion that the PIN was typed for one purpose (RFC 7523 §3, EdDSA of RFC 8037 §3.1).
  package func assertion(_ claims: KnowledgeAssertion.Claims) throws(CryptographyError) -> String {
    let header = Array(#"{"alg":"EdDSA","typ":"JWT"}"#.utf8)
    let input = "\(header.base64URL).\(JSON.encode(claims).base64URL)"
    return "\(input).\(try key.signature(for: Array(input.utf8)).base64URL)"
  }
}

/// The data that `pin_proof` signs.
package struct ApprovalClaim: Sendable, Equatable {
  /// The request's current nonce, 32 bytes.
  package var nonce: [UInt8]
  /// SHA-256 of the exact decrypted request, 32 bytes.
  package var requestSHA256: [UInt8]
  package var decision: ApprovalAnswer.Decision

  package init(nonce: [UInt8], requestSHA256: [UInt8], decision: ApprovalAnswer.Decision) {
    self.nonce = nonce
    self.requestSHA256 = requestSHA256
    self.decision = decision
  }

  fileprivate var signedBytes: [UInt8] {
    Array("approval-pin/v1".utf8) + nonce + requestSHA256 + Array(decision.rawValue.utf8)
  }

  package func isProved(by proof: [UInt8], _ key: Ed25519.PublicKey) -> Bool {
    nonce.count == 32 && requestSHA256.count == 32 && key.isValidSignature(proof, for: signedBytes)
  }
}

/// A JWT signed by `KK`. Its form, audience and times are checked before an attempt is counted; the signature is
/// checked after that.
package struct KnowledgeAssertion: Sendable, Equatable {
  package struct Claims: Codable, Sendable, Equatable {
    /// The device's client ID.
    package var iss: String
    /// The profile ID.
    package var sub: String
    /// The URL to which the assertion is sent: an assertion is valid for one purpose only.
    package var aud: String
    package var jti: String
    package var iat: Int64
    package var exp: Int64
    /// The server's nonce, for the activation of a new PIN and the commit of a PIN change; otherwise nil.
    package var nonce: String?
    /// The identifier of the authenticator whose key signs; nil for the PIN.
    package var authenticator: String?
    /// Base64url of SHA-256 of the data that is sent with the assertion, for a custom authenticator; otherwise nil.
    package var dataSHA256: String?

    enum CodingKeys: String, CodingKey {
      case iss, sub, aud, jti, iat, exp, nonce, authenticator
      case dataSHA256 = "data_sha256"
    }

    /// - Parameter now: Unix seconds by the server's clock.
    package init(
      clientID: String, profileID: String, audience: String, identifier: String, now: Int64, nonce: String? = nil,
      authenticator: String? = nil, dataSHA256: String? = nil
    ) {
      iss = clientID
      sub = profileID
      aud = audience
      jti = identifier
      iat = now
      exp = now + 60
      self.nonce = nonce
      self.authenticator = authenticator
      self.dataSHA256 = dataSHA256
    }
  }

  package enum VerificationError: Error, Equatable, Sendable {
    /// Not counted as an attempt; the text names the invalid part.
    case invalid(String)
    /// The times differ by more than ten minutes from the server's clock (9031).
    case clockWrong
  }

  package let claims: Claims
  private let signedText: [UInt8]
  private let signature: [UInt8]

  /// Parses an assertion and checks everything except the signature.
  package init(
    parsing text: String, clientID: String, profileID: String, audience: String, now: Int64, nonce: String? = nil,
    authenticator: String? = nil, dataSHA256: String? = nil
  ) throws(VerificationError) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard text.utf8.count <= 4096, parts.count == 3, let header = bytes(base64URL: parts[0]),
      let payload = bytes(base64URL: parts[1]), let signature = bytes(base64URL: parts[2]), signature.count == 64
    else { throw .invalid("form") }
    guard (try? JSON.decode(AssertionHeader.self, from: header))?.alg == "EdDSA" else { throw .invalid("alg or crit") }
    guard let claims = try? JSON.decode(Claims.self, from: payload) else { throw .invalid("claims") }
    guard claims.iss == clientID, claims.sub == profileID else { throw .invalid("iss and sub") }
    guard claims.aud == audience else { throw .invalid("aud") }
    guard (1...64).contains(claims.jti.utf8.count) else { throw .invalid("jti") }
    guard claims.nonce == nonce else { throw .invalid("nonce") }
    guard claims.authenticator == authenticator else { throw .invalid("authenticator") }
    guard claims.dataSHA256 == dataSHA256 else { throw .invalid("data_sha256") }
    guard let lifetime = AssertionLifetime(iat: claims.iat, exp: claims.exp) else { throw .invalid("lifetime") }
    guard lifetime.isCurrent(at: now) else { throw .clockWrong }
    self.claims = claims
    signedText = Array("\(parts[0]).\(parts[1])".utf8)
    self.signature = signature
  }

  /// Verifies the signature. The caller has counted the PIN attempt.
  package func isSigned(by key: Ed25519.PublicKey) -> Bool { key.isValidSignature(signature, for: signedText) }
}

/// The protected header of an assertion.
struct AssertionHeader: Decodable {
  var alg: String
  /// Extensions that a recipient must know (RFC 7515 §4.1.11): none is known here.
  var crit: ForbiddenMember?
}
