// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import PINProtection
import Secrets

/// The keys of an enrolled token: its signing key and the server's public key.
struct TokenKeys: Sendable {
  let device: DeviceKey
  /// The server sends this key once, at enrollment.
  let server: RSAPublicKey
  /// Whether the user must type a PIN before each approval, as required by the server's administrator or chosen by the
  /// user.
  var wantsPIN: Bool
}

/// An enrollment request whose result at the server is unknown.
struct OpenEnrollment: Sendable {
  let key: DeviceKey
  /// The enrollment URI, which contains the one-time credential.
  let uri: String
  /// Milliseconds since 1970; nil if the board's clock was not set.
  let giveUpAt: Int64?
}

/// The stored state of one account. A new enrollment keeps `active` unchanged until the server has accepted the new
/// keys.
struct PushCredentials: Sendable {
  var active: TokenKeys?
  var next: OpenEnrollment?
  /// The number of digits of the account's PIN; not secret.
  var pinLength: Int?

  init() {}

  /// The number of encoded parts: version, PIN length, active device key, server key, "pin" if a PIN is required, next
  /// key, URI and expiry. Missing values are empty.
  private static let version = "1"
  private static let partCount = 8

  init(_ record: AccountRecord) throws(StateStoreError) {
    // An account whose keys were deleted has no credentials.
    if record.secrets.count == 0 { return }
    let damaged = StateStoreError.corrupt(.keys(of: record.id))
    guard let parts = record.secrets.parts(), parts.count == Self.partCount, parts[0].text == Self.version else {
      throw damaged
    }
    do {
      if parts[1].count > 0 {
        guard let length = Int(parts[1].text), PINPolicy.lengths.contains(length) else { throw damaged }
        pinLength = length
      }
      if parts[2].count > 0 {
        active = TokenKeys(
          device: try DeviceKey(secret: parts[2]),
          server: try RSAPublicKey(pkcs1: parts[3].withExposedSecret { Array($0) }), wantsPIN: parts[4].text == "pin")
      }
      if parts[5].count > 0 {
        next = OpenEnrollment(
          key: try DeviceKey(secret: parts[5]), uri: parts[6].text, giveUpAt: Int64(parts[7].text))
      }
    } catch { throw damaged }
  }

  func encoded() throws(CryptographyError) -> SecretBytes {
    func part(_ text: String) -> SecretBytes { SecretBytes(copying: Array(text.utf8)) }
    return .joining([
      part(Self.version), part(pinLength.map(String.init) ?? ""), try active?.device.exportedSecret() ?? part(""),
      SecretBytes(copying: active?.server.pkcs1 ?? []), part(active?.wantsPIN == true ? "pin" : ""),
      try next?.key.exportedSecret() ?? part(""), part(next?.uri ?? ""), part(next?.giveUpAt.map(String.init) ?? ""),
    ])
  }
}

/// The stored state of one endpoint: its certificate pins. Not secret.
struct EndpointCredentials: Sendable {
  /// Pins in the form of `ServerTrust.pins`.
  var pins: [String]

  init(pins: [String]) { self.pins = pins }

  init(_ record: TokenServerRecord) throws(StateStoreError) {
    guard let parts = record.secrets.parts() else { throw .corrupt(.certificatePins(of: record.id)) }
    pins = parts.map(\.text)
  }

  var encoded: SecretBytes { .joining(pins.map { SecretBytes(copying: Array($0.utf8)) }) }
}

extension SecretBytes {
  fileprivate var text: String { withExposedSecret { String(decoding: $0, as: UTF8.self) } }
}
