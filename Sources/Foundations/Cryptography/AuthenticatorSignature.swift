// SPDX-License-Identifier: Apache-2.0

/// What an authenticator with a key on P-256 has signed of a challenge, which is the SHA-256 of known bytes.
package struct AuthenticatorSignature: Sendable {
  /// How the authenticator signs.
  package enum Scheme: Sendable, Equatable {
    /// A card, which signs the challenge itself: ES256 of what was hashed.
    case badge
    /// A FIDO2 authenticator, which signs its authenticator data and the challenge (WebAuthn §6.3.3).
    case securityKey(relyingParty: String)
  }

  /// Why a signature does not count.
  package enum VerificationError: Error, Equatable, CustomStringConvertible {
    case noAuthenticatorData, otherServer, untouched, wrong

    package var description: String {
      switch self {
      case .noAuthenticatorData: "there is no authenticator data"
      case .otherServer: "it is for another server"
      case .untouched: "the key was not touched"
      case .wrong: "the signature is wrong"
      }
    }
  }

  /// The flag "user present" of authenticator data (WebAuthn §6.1).
  private static let userPresent: UInt8 = 1

  private let signature: [UInt8]
  private let authenticatorData: [UInt8]?

  /// - Parameters:
  ///   - signature: DER ECDSA-Sig-Value.
  ///   - authenticatorData: of a security key; nil for a badge.
  package init(_ signature: [UInt8], authenticatorData: [UInt8]?) {
    self.signature = signature
    self.authenticatorData = authenticatorData
  }

  /// - Parameter hashed: the bytes whose SHA-256 is the challenge.
  package func verify(_ hashed: [UInt8], by key: P256PublicKey, as scheme: Scheme) throws(VerificationError) {
    let signed: [UInt8]
    switch scheme {
    case .badge: signed = hashed
    case .securityKey(let relyingParty):
      guard let data = authenticatorData, data.count >= 37 else { throw .noAuthenticatorData }
      guard Array(data[..<32]) == SHA256.hash(Array(relyingParty.utf8)) else { throw .otherServer }
      guard data[32] & Self.userPresent != 0 else { throw .untouched }
      signed = data + SHA256.hash(hashed)
    }
    guard key.isValidDERSignature(signature, for: signed) else { throw .wrong }
  }
}

extension P256PublicKey {
  /// - Parameter point: uncompressed, 65 bytes.
  /// - Returns: nil for anything else, and for a point that is not on the curve.
  package init?(uncompressed point: [UInt8]) {
    guard point.count == 65, point[0] == 4,
      let key = try? P256PublicKey(x: Array(point[1..<33]), y: Array(point[33...]))
    else { return nil }
    self = key
  }
}
