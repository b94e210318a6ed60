// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import PINProtection
import Secrets

/// The stored state of an authenticator other than the PIN. Its refresh token is its own: no other authenticator
/// reveals it. That of a fingerprint is encrypted with a PIN-derived key, because only this token knows that a finger
/// has matched.
struct StoredAuthenticator: Sendable {
  private enum Tag: UInt16 { case identifier = 1, token, registration, driverData, wrapName }

  /// The maximum number for one account.
  static let most = 16

  let identifier: String
  /// `RT`, 32 bytes; encrypted if there is a `wrapName`.
  let token: SecretBytes
  /// The registration whose activation the server has not confirmed; nil if the authenticator is registered.
  var registration: String?
  /// As in `DriverCall.registration`.
  let driverData: [UInt8]
  /// The name of the key from the PIN that encrypts the token: the ID of its registration. Nil for a custom
  /// authenticator.
  let wrapName: String?

  var kind: Authenticator.Kind { wrapName == nil ? .custom : .biometric }

  init(
    identifier: String, token: SecretBytes, registration: String?, driverData: [UInt8] = [], wrapName: String? = nil
  ) {
    self.wrapName = wrapName
    self.identifier = identifier
    self.token = token
    self.registration = registration
    self.driverData = driverData
  }

  /// `RT`, if it is encrypted.
  func decrypted(by tokens: UnwrappedTokens) -> SecretBytes? {
    wrapName.flatMap { try? tokens.masked(token, named: $0) }
  }

  /// Whether both are of one registration.
  func isSame(as other: StoredAuthenticator) -> Bool {
    identifier == other.identifier && SecretBytes.constantTimeEqual(token, other.token)
  }
}

/// Encoding as a part of an account's credentials.
extension StoredAuthenticator {
  /// - Returns: nil for bytes that are not an encoding.
  init?(encoded: SecretBytes) {
    guard let fields = SecretFields(encoded: encoded), let identifier = fields.text(Tag.identifier),
      Authenticator.isIdentifier(identifier), let token = fields[Tag.token], token.count == 32
    else { return nil }
    let registration = fields.text(Tag.registration)
    guard registration?.isUUID != false else { return nil }
    let driverData = fields[Tag.driverData]?.withExposedSecret { Array($0) } ?? []
    guard driverData.count <= AuthenticatorData.largestRegistration else { return nil }
    let wrapName = fields.text(Tag.wrapName)
    guard wrapName?.isUUID != false else { return nil }
    self.init(
      identifier: identifier, token: token, registration: registration, driverData: driverData, wrapName: wrapName)
  }

  var encoded: SecretBytes {
    var fields = SecretFields()
    fields.set(Tag.identifier, text: identifier)
    fields[Tag.token] = token
    fields.set(Tag.registration, text: registration)
    fields.set(Tag.wrapName, text: wrapName)
    if !driverData.isEmpty { fields[Tag.driverData] = SecretBytes(copying: driverData) }
    return fields.encoded
  }

  /// - Parameter list: the encodings; nil for none.
  /// - Returns: nil if one of them is not an encoding, or if there are too many.
  static func decode(_ list: SecretBytes?) -> [StoredAuthenticator]? {
    guard let list else { return [] }
    guard let parts = list.parts(), parts.count <= most else { return nil }
    let decoded = parts.compactMap(StoredAuthenticator.init(encoded:))
    return decoded.count == parts.count ? decoded : nil
  }
}
