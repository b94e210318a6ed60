// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import OpenPGP
import Secrets

/// The stored state of one reference token server: the device key `DK`, the client ID and the certificate pins.
struct DeviceCredentials: Sendable {
  var deviceKey: P256PrivateKey
  /// Nil until the server has confirmed the registration.
  var clientID: String?
  var pins: [String]

  init(deviceKey: P256PrivateKey, clientID: String?, pins: [String]) {
    self.deviceKey = deviceKey
    self.clientID = clientID
    self.pins = pins
  }

  init(_ record: TokenServerRecord) throws(StateStoreError) {
    guard let parts = record.secrets.parts(), parts.count >= 2, let key = try? P256PrivateKey(secret: parts[0])
    else { throw .corrupt(.registration(at: record.id)) }
    deviceKey = key
    clientID = parts[1].count == 0 ? nil : parts[1].publicText
    pins = parts.dropFirst(2).map(\.publicText)
  }

  func encoded() throws(CryptographyError) -> SecretBytes {
    let texts = [clientID ?? ""] + pins
    return .joining([try deviceKey.exportedSecret()] + texts.map { SecretBytes(copying: Array($0.utf8)) })
  }
}

/// The stored state of one account: its OpenPGP key `CK`, the server's certificate and the digest of its activation
/// code.
struct AccountCredentials: Sendable {
  var key: OpenPGPKey
  /// Nil until the keys are exchanged.
  var serverCertificate: OpenPGPCertificate?
  /// SHA-256 of the one-time activation code: the same code resumes this enrollment.
  var codeDigest: [UInt8]
  /// Set for accounts whose server requires a PIN.
  var pin: AccountPIN?

  /// The number of parts before the PIN's parts.
  private static let ownParts = 3

  init(key: OpenPGPKey, serverCertificate: OpenPGPCertificate?, codeDigest: [UInt8]) {
    self.key = key
    self.serverCertificate = serverCertificate
    self.codeDigest = codeDigest
  }

  init(_ record: AccountRecord) throws(StateStoreError) {
    guard let parts = record.secrets.parts(), ([0] + AccountPIN.partCounts).contains(parts.count - Self.ownParts),
      let key = try? OpenPGPKey(secret: parts[0])
    else { throw .corrupt(.keys(of: record.id)) }
    self.key = key
    let certificate = parts[1].withExposedSecret { Array($0) }
    do { serverCertificate = certificate.isEmpty ? nil : try OpenPGPCertificate(parsing: certificate) } catch {
      throw .corrupt(.serverCertificate(of: record.id))
    }
    codeDigest = parts[2].withExposedSecret { Array($0) }
    guard parts.count > Self.ownParts else { return }
    do { pin = try AccountPIN(parts: Array(parts[Self.ownParts...])) } catch {
      throw .corrupt(.pin(of: record.id))
    }
  }

  func encoded() -> SecretBytes {
    .joining(
      [key.secret, SecretBytes(copying: serverCertificate?.bytes ?? []), SecretBytes(copying: codeDigest)]
        + (pin?.parts ?? []))
  }
}

extension SecretBytes {
  /// The text of a part that is not secret but stored in the same encrypted record.
  var publicText: String { withExposedSecret { String(decoding: $0, as: UTF8.self) } }
}
