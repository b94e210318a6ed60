// SPDX-License-Identifier: Apache-2.0
import Cryptography
import PINProtection
import Secrets

/// The stored state of a PIN that the server verifies: the refresh token encrypted with a PIN-derived key. The token
/// stores nothing that distinguishes the correct PIN from a wrong one.
struct AccountPIN: Sendable {
  let current: ProtectedToken
  /// A PIN change whose commit may or may not have reached the server; only the server knows the outcome.
  var next: Change?

  struct Change: Sendable {
    let id: String
    let token: ProtectedToken
  }

  init(_ current: ProtectedToken) { self.current = current }
}

/// A refresh token encrypted with a PIN-derived key.
struct ProtectedToken: Sendable {
  /// The number of digits of the PIN; not secret. Stored per token, because a change can apply a new policy.
  let length: Int
  let wrapped: WrappedToken

  /// - Throws: like `WrappedToken.wrap`.
  init(
    _ token: SecretBytes, under pin: PIN, binding: SecretBytes, parameters: Scrypt.Parameters
  ) throws(CryptographyError) {
    length = pin.count
    wrapped = try .wrap(token, under: pin, binding: binding, parameters: parameters)
  }
}

/// Encoding as parts of an account record: length and token; for a change also its id, length and token.
extension AccountPIN {
  static let partCounts = [2, 5]

  init(parts: [SecretBytes]) throws(CryptographyError) {
    current = try ProtectedToken(parts: parts[0..<2])
    if parts.count == 5 { next = Change(id: parts[2].publicText, token: try ProtectedToken(parts: parts[3..<5])) }
  }

  var parts: [SecretBytes] {
    current.parts + (next.map { [SecretBytes(copying: Array($0.id.utf8))] + $0.token.parts } ?? [])
  }
}

extension ProtectedToken {
  fileprivate init(parts: ArraySlice<SecretBytes>) throws(CryptographyError) {
    guard let length = Int(parts[parts.startIndex].publicText), PINPolicy.lengths.contains(length) else {
      throw .malformed("length of a PIN")
    }
    self.length = length
    wrapped = try WrappedToken(encoded: parts[parts.startIndex + 1])
  }

  fileprivate var parts: [SecretBytes] { [SecretBytes(copying: Array("\(length)".utf8)), wrapped.encoded] }
}
