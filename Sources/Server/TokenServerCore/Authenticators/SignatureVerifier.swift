// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import ReferenceProtocol

/// Verifies the data of authenticators that sign the challenge with P-256, in place of scripts. Its results are those
/// of a script.
package enum SignatureVerifier {
  /// The data of the device, JSON. All values are Base64.
  private struct Proof: Codable {
    /// The uncompressed point, 65 bytes; only in a registration.
    var publicKey: String?
    /// Of a security key: the authenticator data (WebAuthn §6.1).
    var authenticatorData: String?
    /// DER ECDSA-Sig-Value.
    var signature: String

    enum CodingKeys: String, CodingKey {
      case signature
      case publicKey = "public_key"
      case authenticatorData = "authenticator_data"
    }
  }

  /// What the server keeps of a registration, JSON.
  private struct Registration: Codable {
    var publicKey: String

    enum CodingKeys: String, CodingKey { case publicKey = "public_key" }
  }

  private struct RefusalError: Error {
    let why: String
  }

  /// The flag "user present" of authenticator data.
  private static let userPresent: UInt8 = 1

  /// - Parameters:
  ///   - data: of the device.
  ///   - registration: the result of the registration; ignored in a registration.
  ///   - challenge: of this use.
  package static func result(
    of data: [UInt8], _ registration: String?, _ challenge: AuthenticatorChallenge,
    _ scheme: ServerConfiguration.Authenticator.SignatureScheme
  ) -> ScriptResult {
    do throws(RefusalError) {
      guard let proof = try? JSON.decode(Proof.self, from: data) else {
        throw RefusalError(why: "the data is not the one of this kind of authenticator")
      }
      guard challenge.purpose != .registration else {
        guard let text = proof.publicKey, let key = publicKey(text) else {
          throw RefusalError(why: "there is no public key on P-256")
        }
        try verify(proof, by: key, challenge, scheme)
        let registration = JSON.encode(Registration(publicKey: text))
        return ScriptResult(status: 2000, registrationData: String(decoding: registration, as: UTF8.self))
      }
      guard let registration = registration.map({ Array($0.utf8) }),
        let known = try? JSON.decode(Registration.self, from: registration), let key = publicKey(known.publicKey)
      else { return ScriptResult(status: ScriptResult.executionFailed) }
      try verify(proof, by: key, challenge, scheme)
      return ScriptResult(status: 2000)
    } catch { return ScriptResult(status: 4000, data: error.why) }
  }

  private static func verify(
    _ proof: Proof, by key: P256PublicKey, _ challenge: AuthenticatorChallenge,
    _ scheme: ServerConfiguration.Authenticator.SignatureScheme
  ) throws(RefusalError) {
    guard let signature = bytes(base64: proof.signature) else { throw RefusalError(why: "there is no signature") }
    let signed: [UInt8]
    switch scheme {
    // The authenticator signs the challenge, which is a SHA-256: ES256 of what was hashed.
    case .badge: signed = challenge.hashedBytes
    case .securityKey:
      guard let data = proof.authenticatorData.flatMap({ bytes(base64: $0) }), data.count >= 37 else {
        throw RefusalError(why: "there is no authenticator data")
      }
      let relyingParty = SHA256.hash(Array(AuthenticatorChallenge.host(ofIssuer: challenge.issuer).utf8))
      guard Array(data[..<32]) == relyingParty else { throw RefusalError(why: "it is for another server") }
      guard data[32] & userPresent != 0 else { throw RefusalError(why: "the key was not touched") }
      signed = data + challenge.digest
    }
    guard key.isValidDERSignature(signature, for: signed) else { throw RefusalError(why: "the signature is wrong") }
  }

  private static func publicKey(_ text: String) -> P256PublicKey? {
    guard let point = bytes(base64: text), point.count == 65, point[0] == 4 else { return nil }
    return try? P256PublicKey(x: Array(point[1..<33]), y: Array(point[33...]))
  }
}
