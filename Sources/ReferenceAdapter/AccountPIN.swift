import Cryptography
import PINProtection
import Secrets

/// What the token keeps for a PIN that the server judges: the refresh token under it, and nothing that tells a right
/// PIN from a wrong one.
struct AccountPIN: Sendable {
  let current: ProtectedToken
  /// A change that may or may not be committed: the server knows.
  var next: Change?

  struct Change: Sendable {
    let id: String
    let token: ProtectedToken
  }

  init(_ current: ProtectedToken) { self.current = current }
}

/// A refresh token under a PIN.
struct ProtectedToken: Sendable {
  /// Digits of the PIN; no secret. A change may come with another policy, so each token has its own.
  let length: Int
  let wrapped: WrappedToken

  /// - Throws: as `WrappedToken.wrap`.
  init(
    _ token: SecretBytes, under pin: PIN, binding: SecretBytes, parameters: Scrypt.Parameters
  ) throws(CryptographyError) {
    length = pin.count
    wrapped = try .wrap(token, under: pin, binding: binding, parameters: parameters)
  }
}

/// As the parts of an account's record: length, token; and for a change its id, length, token.
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
