// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import Secrets

/// The key pair of a simulated security key or badge. Its name is all that the private key is made of: it protects
/// nothing.
struct SimulatedSigner {
  private let key: P256PrivateKey

  init(_ name: String) throws(CryptographyError) {
    // RFC 5915, without the public key: OpenSSL computes it.
    let head: [UInt8] = [0x30, 0x31, 0x02, 0x01, 0x01, 0x04, 0x20]
    let curve: [UInt8] = [0xA0, 0x0A, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
    let scalar = SHA256.hash(Array("approval-token/simulated/\(name)".utf8))
    key = try P256PrivateKey(secret: SecretBytes(copying: head + scalar + curve))
  }

  /// What `reader-badge` would answer.
  func badge(_ call: DriverCall) throws(CryptographyError) -> AuthenticatorData {
    data(call, [("signature", try key.derSignature(ofDigest: call.challenge))])
  }

  /// What `reader-key` would answer.
  func securityKey(_ call: DriverCall) throws(CryptographyError) -> AuthenticatorData {
    // The relying party, the flag "user present", and a counter.
    let authenticatorData = SHA256.hash(Array(call.server.utf8)) + [1, 0, 0, 0, 1]
    let signature = try key.derSignature(for: authenticatorData + call.challenge)
    return data(call, [("authenticator_data", authenticatorData), ("signature", signature)])
  }

  private func data(_ call: DriverCall, _ values: [(String, [UInt8])]) -> AuthenticatorData {
    let point = [4] + key.publicKey.x + key.publicKey.y
    let all = values + (call.step == .register ? [("public_key", point)] : [])
    let members = all.map { "\"\($0)\":\"\($1.base64)\"" }.joined(separator: ",")
    return AuthenticatorData(SecretBytes(copying: Array("{\(members)}".utf8)))
  }
}
