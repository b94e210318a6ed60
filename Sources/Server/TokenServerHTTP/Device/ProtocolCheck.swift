// SPDX-License-Identifier: Apache-2.0
import HTTPTypes
import ReferenceProtocol
import TokenServerCore

extension HTTPFields {
  /// Checks the versions of the device protocol that a device announces. Without an announcement it is version 1.
  /// - Throws: 10015 for a malformed announcement; 9004 for a device that is too old for this server, 10001 for one
  ///   that is too new.
  func checkProtocolVersions() throws(DeviceAPIError) {
    let announced = self[values: .approvalProtocol]
    let versions = announced.first.flatMap { ProtocolVersions($0) }
    guard announced.isEmpty || (announced.count == 1 && versions != nil) else {
      throw DeviceAPIError(.invalidRequest, "\(ProtocolVersions.headerName) must be OLDEST-NEWEST, each 1 to 9999")
    }
    guard let mismatch = ProtocolMismatchError(device: versions, server: .supported) else { return }
    switch mismatch.outdated {
    case .device: throw DeviceAPIError(.outdatedApp, mismatch.description)
    case .server: throw DeviceAPIError(.configurationInvalid, mismatch.description)
    }
  }
}
