// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol

/// The data of a device for the script of a custom authenticator.
package enum CustomData {
  /// - Returns: the decoded bytes, none for nil; nil if the text is not Base64 of at most 4096 bytes.
  package static func parse(_ text: String?) -> [UInt8]? {
    guard let text else { return [] }
    guard text.utf8.count <= AuthenticatorClaim.largestData * 4 / 3 + 4, let data = bytes(base64: text),
      data.count <= AuthenticatorClaim.largestData
    else { return nil }
    return data
  }
}
