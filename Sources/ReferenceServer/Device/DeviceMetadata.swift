import Cryptography
import ReferenceProtocol

/// What is wrong with what a device says of itself, as a sentence or the middle of one.
struct DeviceMetadataFlaw: Error, Equatable, Sendable, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

extension RegistrationRequest {
  /// - Returns: the device's key.
  func checked() throws(DeviceMetadataFlaw) -> P256PublicKey {
    guard tokenEndpointAuthMethod == "private_key_jwt", jwks.keys.count == 1 else {
      throw DeviceMetadataFlaw("private_key_jwt with exactly one key is needed.")
    }
    guard (1...128).contains(clientName.utf8.count), softwareID.utf8.count <= 128, softwareVersion.utf8.count <= 64
    else { throw DeviceMetadataFlaw("client_name, software_id or version is too long.") }
    guard [clientName, softwareID, softwareVersion].allSatisfy(\.isPrintable) else {
      throw DeviceMetadataFlaw(
        "client_name, software_id and software_version must have no control or format characters.")
    }
    let features = approvalCapabilities.biometric + approvalCapabilities.custom
    guard features.count <= 32, features.allSatisfy({ $0.utf8.count <= 64 && $0.isPrintable }) else {
      throw DeviceMetadataFlaw("approval_capabilities must have at most 32 names of at most 64 printable bytes.")
    }
    do { return try jwks.keys[0].publicKey() } catch { throw DeviceMetadataFlaw("\(error)") }
  }
}

extension ValidationRequest {
  func checkVersions() throws(DeviceMetadataFlaw) {
    guard profiles.count <= 64, softwareVersion.utf8.count <= 64, osVersion.utf8.count <= 128 else {
      throw DeviceMetadataFlaw("too many profiles or too long versions")
    }
    guard softwareVersion.isPrintable, osVersion.isPrintable else {
      throw DeviceMetadataFlaw("software_version and os_version must have no control or format characters")
    }
  }

  /// - Returns: JSON of at most 4096 bytes; nil if the device says nothing of it.
  func checkedCapabilities() throws(DeviceMetadataFlaw) -> String? {
    let capabilities = approvalCapabilities.map { String(decoding: JSON.encode($0), as: UTF8.self) }
    guard capabilities.map({ $0.utf8.count <= 4096 }) ?? true else {
      throw DeviceMetadataFlaw("approval_capabilities are longer than 4096 bytes")
    }
    return capabilities
  }
}
