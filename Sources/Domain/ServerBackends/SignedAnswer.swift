// SPDX-License-Identifier: Apache-2.0
import Cryptography
import JSONValues
import MobileAuth
import Secrets

/// The data of an authenticator that signs, as in docs/authenticators.md.
struct SignedAnswer {
  let signature: AuthenticatorSignature
  let isOfSecurityKey: Bool
  /// Only in a registration.
  let publicKey: [UInt8]?

  init?(_ data: AuthenticatorData) {
    guard data.bytes.count <= AuthenticatorData.largest else { return nil }
    let json = data.bytes.withExposedSecret { JSONValue(parsing: Array($0)) }
    guard let json, let signature = json["signature"]?.text.flatMap({ bytes(base64: $0) }) else { return nil }
    let authenticatorData = json["authenticator_data"]?.text.flatMap { bytes(base64: $0) }
    self.signature = AuthenticatorSignature(signature, authenticatorData: authenticatorData)
    isOfSecurityKey = authenticatorData != nil
    publicKey = json["public_key"]?.text.flatMap { bytes(base64: $0) }
  }
}
