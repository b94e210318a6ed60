// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
import ReferenceProtocol

// The fuzzer compiles this file in one module with the core's parsers.
#if canImport(TokenServerCore)
  import TokenServerCore
#endif

/// An error in the metadata of a device. The description is a sentence or a part of one.
struct DeviceMetadataError: Error, Equatable, Sendable, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

extension RegistrationRequest {
  /// Checks the metadata of a registration.
  /// - Returns: the public key of the device.
  func checked() throws(DeviceMetadataError) -> P256PublicKey {
    guard tokenEndpointAuthMethod == "private_key_jwt", jwks.keys.count == 1 else {
      throw DeviceMetadataError("private_key_jwt with exactly one key is needed.")
    }
    guard (1...128).contains(clientName.utf8.count), softwareID.utf8.count <= 128, softwareVersion.utf8.count <= 64
    else { throw DeviceMetadataError("client_name, software_id or version is too long.") }
    guard clientName.isSafeName, [softwareID, softwareVersion].allSatisfy(\.isSafeToShow) else {
      throw DeviceMetadataError(
        "client_name, software_id and software_version must have no control, format or invisible characters.")
    }
    if let boardSerial, !(1...64).contains(boardSerial.utf8.count) || !boardSerial.isSafeName {
      throw DeviceMetadataError("board_serial must have 1 to 64 bytes without control, format or invisible characters.")
    }
    try approvalCapabilities.check()
    do { return try jwks.keys[0].publicKey() } catch { throw DeviceMetadataError("\(error)") }
  }
}

extension ValidationRequest {
  func checkVersions() throws(DeviceMetadataError) {
    guard profiles.count <= 64, softwareVersion.utf8.count <= 64, osVersion.utf8.count <= 128 else {
      throw DeviceMetadataError("too many profiles or too long versions")
    }
    guard softwareVersion.isSafeToShow, osVersion.isSafeToShow else {
      throw DeviceMetadataError("software_version and os_version must have no control or format characters")
    }
  }

  /// Checks the capabilities.
  /// - Returns: the capabilities as JSON; nil if the request contains none.
  func checkedCapabilities() throws(DeviceMetadataError) -> String? {
    try approvalCapabilities?.check()
    return approvalCapabilities.map { String(decoding: JSON.encode($0), as: UTF8.self) }
  }
}

extension ApprovalCapabilities {
  /// Checks the bounds, which are the same for a registration and for a validation.
  fileprivate func check() throws(DeviceMetadataError) {
    let names = biometric + custom
    guard names.count <= 32, names.allSatisfy({ $0.utf8.count <= 64 && $0.isSafeToShow }) else {
      throw DeviceMetadataError("approval_capabilities must have at most 32 names of at most 64 printable bytes.")
    }
  }
}
