// SPDX-License-Identifier: Apache-2.0
package import Cryptography

/// Proof of possession of the device key for one request (RFC 9449 §4.2). Freshness is ensured by the server's nonce,
/// so the token needs no clock; `iat` is required by the RFC and not checked.
package struct DPoPProof: Sendable, Equatable {
  package let key: JWK
  /// The thumbprint (RFC 7638) of the key.
  package let thumbprint: String
  package let identifier: String
  package let nonce: String?

  struct Header: Codable {
    var typ = "dpop+jwt"
    var alg = "ES256"
    var jwk: JWK
    /// Extensions that a recipient must know (RFC 7515 §4.1.11): none is known here.
    var crit: ForbiddenMember?
  }

  struct Claims: Codable {
    var jti: String
    var htm: String
    /// The URL without query and fragment.
    var htu: String
    var iat: Int64
    var ath: String?
    var nonce: String?
  }

  /// Creates the value of the `DPoP` header.
  package static func make(
    method: String, url: String, nonce: String?, accessToken: String?, issuedAt: Int64, key: P256PrivateKey
  ) throws(CryptographyError) -> String {
    try Maker(key).make(method: method, url: url, nonce: nonce, accessToken: accessToken, issuedAt: issuedAt)
  }

  /// Makes proofs with one key, whose header is the same in all of them.
  package struct Maker: Sendable {
    private let key: P256PrivateKey
    private let header: [UInt8]

    package init(_ key: P256PrivateKey) {
      self.key = key
      header = JSON.encode(Header(jwk: JWK(key.publicKey)))
    }

    /// As `DPoPProof.make`.
    package func make(
      method: String, url: String, nonce: String?, accessToken: String?, issuedAt: Int64
    ) throws(CryptographyError) -> String {
      let claims = Claims(
        jti: Random.uuid(), htm: method, htu: withoutQuery(url), iat: issuedAt, ath: accessToken.map(hash(ofToken:)),
        nonce: nonce)
      return try JWS.sign(header: header, payload: JSON.encode(claims), key: key)
    }
  }

  /// The key in a header. Equal headers have equal keys, so that a server can keep it instead of parsing it again.
  package struct ParsedHeader: Sendable {
    fileprivate let jwk: JWK
    fileprivate let thumbprint: String
    fileprivate let publicKey: P256PublicKey

    package init(_ bytes: [UInt8]) throws(WireError) {
      let header = try JSON.decode(Header.self, from: bytes)
      guard header.typ == "dpop+jwt", header.alg == "ES256" else {
        throw refusal("typ must be dpop+jwt, alg ES256")
      }
      guard let key = try? header.jwk.publicKey() else { throw refusal("bad signature") }
      (jwk, thumbprint, publicKey) = (header.jwk, header.jwk.thumbprint, key)
    }
  }

  /// Checks signature, method, URL and token binding. The caller must check the nonce, the replay of `identifier`, and
  /// the owner of the key.
  /// - Parameter parse: parses the header, or returns what the same header gave before.
  package init(
    verifying proof: String, method: String, url: String, accessToken: String?,
    parse: (_ header: [UInt8]) throws(WireError) -> ParsedHeader = ParsedHeader.init
  ) throws(WireError) {
    guard let unverified = try? JWS.Unverified(parsing: proof) else { throw refusal("not a compact JWS") }
    let header = try parse(unverified.header)
    guard let payload = try? unverified.payload(verifiedBy: header.publicKey) else { throw refusal("bad signature") }
    let claims = try JSON.decode(Claims.self, from: payload)
    guard (1...128).contains(claims.jti.utf8.count) else { throw refusal("jti must have 1 to 128 bytes") }
    guard claims.htm == method else { throw refusal("htm is not \(method)") }
    guard claims.htu == withoutQuery(url) else { throw refusal("htu is not \(withoutQuery(url))") }
    guard claims.ath == accessToken.map(hash(ofToken:)) else {
      throw refusal("ath does not belong to the access token")
    }
    key = header.jwk
    thumbprint = header.thumbprint
    identifier = claims.jti
    nonce = claims.nonce
  }
}

/// `private_key_jwt` client authentication (RFC 7523 §3, OpenID Connect Core §9).
package struct ClientAssertion: Sendable, Equatable {
  struct Claims: Codable {
    var iss: String
    var sub: String
    var aud: String
    var jti: String
    var iat: Int64
    var exp: Int64
  }

  /// - Parameters:
  ///   - audience: the token server's issuer.
  ///   - now: Unix seconds by the *server's* clock, from its `Date` header over verified TLS.
  package static func make(
    clientID: String, audience: String, now: Int64, key: P256PrivateKey
  ) throws(CryptographyError) -> String {
    let claims = Claims(iss: clientID, sub: clientID, aud: audience, jti: Random.uuid(), iat: now, exp: now + 60)
    return try JWS.sign(header: Array(#"{"alg":"ES256","typ":"JWT"}"#.utf8), payload: JSON.encode(claims), key: key)
  }

  /// The client ID in an assertion that is not verified yet, to find its key.
  package static func claimedClientID(_ assertion: String) -> String? {
    guard let unverified = try? JWS.Unverified(parsing: assertion) else { return nil }
    return try? JSON.decode(Claims.self, from: unverified.untrustedPayload).sub
  }

  package enum VerificationError: Error, Equatable, Sendable {
    case invalid(String)
    /// `exp` or `iat` differ by more than ten minutes from the server's clock: the device's clock is wrong (9031).
    case clockWrong
  }

  /// - Returns: the assertion's `jti`; the caller must refuse a repeated one.
  package static func verify(
    _ assertion: String, clientID: String, audience: String, now: Int64, key: P256PublicKey
  ) throws(VerificationError) -> String {
    guard let unverified = try? JWS.Unverified(parsing: assertion),
      let payload = try? unverified.payload(verifiedBy: key),
      let claims = try? JSON.decode(Claims.self, from: payload)
    else { throw .invalid("signature") }
    guard (try? JSON.decode(AssertionHeader.self, from: unverified.header))?.alg == "ES256" else {
      throw .invalid("alg or crit")
    }
    guard claims.iss == clientID, claims.sub == clientID else { throw .invalid("iss and sub") }
    guard claims.aud == audience else { throw .invalid("aud") }
    guard (1...64).contains(claims.jti.utf8.count) else { throw .invalid("jti") }
    guard let lifetime = AssertionLifetime(iat: claims.iat, exp: claims.exp) else { throw .invalid("lifetime") }
    guard lifetime.isCurrent(at: now) else { throw .clockWrong }
    return claims.jti
  }
}

private func refusal(_ why: String) -> WireError { .malformed(what: "DPoP proof", why: why) }

private func withoutQuery(_ url: String) -> String {
  String(Substring(url.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }))
}

/// The claim `ath` (RFC 9449 §4.2).
private func hash(ofToken token: String) -> String { SHA256.hash(Array(token.utf8)).base64URL }
