// SPDX-License-Identifier: Apache-2.0
package import Cryptography

/// A P-256 public key as JSON Web Key (RFC 7517, RFC 7518 §6.2.1).
package struct JWK: Codable, Sendable, Equatable {
  package var kty: String
  package var crv: String
  package var x: String
  package var y: String
  /// The private key, which must not be sent (RFC 9449 §4.3).
  private var d: ForbiddenMember?

  package init(_ key: P256PublicKey) {
    kty = "EC"
    crv = "P-256"
    x = key.x.base64URL
    y = key.y.base64URL
  }

  package func publicKey() throws(WireError) -> P256PublicKey {
    guard kty == "EC", crv == "P-256", let x = bytes(base64URL: x), let y = bytes(base64URL: y),
      let key = try? P256PublicKey(x: x, y: y)
    else { throw .malformed(what: "JWK", why: "not a P-256 public key") }
    return key
  }

  /// The thumbprint (RFC 7638): Base64url of SHA-256 over the required members in order.
  package var thumbprint: String {
    SHA256.hash(Array(#"{"crv":"\#(crv)","kty":"\#(kty)","x":"\#(x)","y":"\#(y)"}"#.utf8)).base64URL
  }
}

package struct JWKSet: Codable, Sendable, Equatable {
  package var keys: [JWK]

  package init(keys: [JWK]) { self.keys = keys }
}
