// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

/// The records that a device names in its requests. A record of another device gives the same error as an unknown one.
extension ServerRecords {
  package func transaction(_ id: String, of clientID: ClientID) throws -> Transaction {
    guard let transaction = try transaction(id), transaction.clientID == clientID else {
      throw DeviceAPIError(.notFound, "there is no such request for this device")
    }
    return transaction
  }

  /// A profile that is not deleted.
  package func profile(_ id: ProfileID, of clientID: ClientID) throws -> Profile {
    guard let profile = try profile(id, on: clientID) else {
      throw DeviceAPIError(.notFound, "there is no such profile on this device")
    }
    guard !profile.isDeleted else {
      throw DeviceAPIError(.userDeregistered, gone: Gone(clientID: clientID, profileID: id))
    }
    return profile
  }
}

extension RecordStore {
  package func transaction(_ id: String, of clientID: ClientID) async throws -> Transaction {
    try await read { try $0.transaction(id, of: clientID) }
  }

  /// A profile that is not deleted.
  package func profile(_ id: ProfileID, of clientID: ClientID) async throws -> Profile {
    try await read { try $0.profile(id, of: clientID) }
  }
}

extension Transaction {
  package func requireOpen(at now: Timestamp) throws(DeviceAPIError) {
    switch state(at: now) {
    case .open: return
    case .expired: throw DeviceAPIError(.expired, state: .expired)
    case let ended: throw DeviceAPIError(.alreadyHandled, state: ended)
    }
  }
}
