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

/// Encoding as fields of an account's credentials. The length of the current PIN is in the account record.
extension AccountPIN {
  private typealias Tag = AccountCredentials.Tag

  /// - Returns: nil for an account without a PIN.
  init?(_ fields: SecretFields, length: Int?) throws(CryptographyError) {
    let token = fields[Tag.pinToken]
    if length == nil, token == nil { return nil }
    current = try ProtectedToken(length: length, token)
    guard let id = fields.text(Tag.changeID) else { return }
    let next = try ProtectedToken(length: fields.number(Tag.nextPINLength), fields[Tag.nextPINToken])
    self.next = Change(id: id, token: next)
  }

  func write(to fields: inout SecretFields) {
    fields[Tag.pinToken] = current.wrapped.encoded
    fields.set(Tag.changeID, text: next?.id)
    fields.set(Tag.nextPINLength, number: next?.token.length)
    fields[Tag.nextPINToken] = next?.token.wrapped.encoded
  }
}

extension ProtectedToken {
  fileprivate init(length: Int?, _ token: SecretBytes?) throws(CryptographyError) {
    guard let length, PINPolicy.lengths.contains(length), let token else { throw .malformed("PIN") }
    self.length = length
    wrapped = try WrappedToken(encoded: token)
  }
}
