// SPDX-License-Identifier: Apache-2.0
public import Cryptography

/// A P-256 public key as JSON Web Key (RFC 7517, RFC 7518 §6.2.1).
public struct JWK: Codable, Sendable, Equatable {
  public var kty: String
  public var crv: String
  public var x: String
  public var y: String

  public init(_ key: P256PublicKey) {
    kty = "EC"
    crv = "P-256"
    x = key.x.base64URL
    y = key.y.base64URL
  }

  public func publicKey() throws(WireError) -> P256PublicKey {
    guard kty == "EC", crv == "P-256", let x = bytes(base64URL: x), let y = bytes(base64URL: y),
      let key = try? P256PublicKey(x: x, y: y)
    else { throw .malformed(what: "JWK", why: "not a P-256 public key") }
    return key
  }

  /// The thumbprint (RFC 7638): Base64url of SHA-256 over the required members in order.
  public var thumbprint: String {
    SHA256.hash(Array(#"{"crv":"\#(crv)","kty":"\#(kty)","x":"\#(x)","y":"\#(y)"}"#.utf8)).base64URL
  }
}

public struct JWKSet: Codable, Sendable, Equatable {
  public var keys: [JWK]

  public init(keys: [JWK]) { self.keys = keys }
}
