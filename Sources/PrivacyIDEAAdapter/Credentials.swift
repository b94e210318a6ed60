import Cryptography
import MobileAuth
import Secrets

/// What an enrolled token signs with and what it believes.
struct TokenKeys: Sendable {
  let device: DeviceKey
  /// Told once, at enrolment.
  let server: RSAPublicKey
  /// The PIN is typed before each accept: the server's administrator wants it, or the person does.
  var wantsPIN: Bool
}

/// An enrolment that the server may or may not have taken.
struct OpenEnrolment: Sendable {
  let key: DeviceKey
  /// With the one-time credential in it.
  let uri: String
  /// Milliseconds since 1970, or nil on a board that did not know the time.
  let giveUpAt: Int64?
}

/// What the token holds for one account. Enrolling again leaves `active` alone until the server has taken the new keys.
struct PushCredentials: Sendable {
  var active: TokenKeys?
  var next: OpenEnrolment?
  /// Digits of the PIN that the vault has for this account; no secret.
  var pinLength: Int?

  init() {}

  /// Version, PIN length, active device key, server key and whether it wants the PIN, next key, URI and time. What is
  /// not there is empty.
  private static let version = "1"
  private static let partCount = 8

  init(_ record: AccountRecord) throws(CustodyFault) {
    // An account that has lost its keys has nothing.
    if record.secrets.count == 0 { return }
    let damaged = CustodyFault.damaged("the keys of account \(record.id)")
    guard let parts = record.secrets.parts(), parts.count == Self.partCount, parts[0].text == Self.version else {
      throw damaged
    }
    do {
      pinLength = Int(parts[1].text)
      if parts[2].count > 0 {
        active = TokenKeys(
          device: try DeviceKey(secret: parts[2]),
          server: try RSAPublicKey(pkcs1: parts[3].withExposedSecret { Array($0) }), wantsPIN: parts[4].text == "pin")
      }
      if parts[5].count > 0 {
        next = OpenEnrolment(
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

/// What the token holds for one endpoint: nothing secret, only how its certificate is recognised.
struct EndpointCredentials: Sendable {
  /// As `ServerTrust.pins`.
  var pins: [String]

  init(pins: [String]) { self.pins = pins }

  init(_ record: TokenServerRecord) throws(CustodyFault) {
    guard let parts = record.secrets.parts() else { throw .damaged("the pins of \(record.id)") }
    pins = parts.map(\.text)
  }

  var encoded: SecretBytes { .joining(pins.map { SecretBytes(copying: Array($0.utf8)) }) }
}

extension SecretBytes {
  fileprivate var text: String { withExposedSecret { String(decoding: $0, as: UTF8.self) } }
}
