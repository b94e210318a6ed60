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
    let signed = AuthenticatorSignature(
      signature, authenticatorData: proof.authenticatorData.flatMap { bytes(base64: $0) })
    let kind: AuthenticatorSignature.Scheme =
      switch scheme {
      case .badge: .badge
      case .securityKey: .securityKey(relyingParty: AuthenticatorChallenge.host(ofIssuer: challenge.issuer))
      }
    do { try signed.verify(challenge.hashedBytes, by: key, as: kind) } catch { throw RefusalError(why: "\(error)") }
  }

  private static func publicKey(_ text: String) -> P256PublicKey? {
    bytes(base64: text).flatMap { P256PublicKey(uncompressed: $0) }
  }
}
