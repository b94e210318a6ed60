// SPDX-License-Identifier: Apache-2.0
package import ReferenceProtocol

/// Durable storage of the server's records.
package protocol RecordStore: Sendable {
  /// Runs `body` on one consistent state.
  func read<Value: Sendable>(_ body: @escaping @Sendable (any ServerRecords) throws -> Value) async throws -> Value

  /// Runs `change` as one transaction, and returns when it is durable. An error rolls it back. `change` may run more
  /// than once, so it must change nothing but the records.
  func write<Value: Sendable>(_ change: @escaping @Sendable (any ServerRecords) throws -> Value) async throws -> Value

  /// Runs `body` while no other task, of whichever server that uses these records, does so with the same name.
  func exclusively<Value: Sendable>(
    _ name: String, _ body: @Sendable () async throws -> Value
  ) async throws -> Value
}

/// What the core reads and writes within one database transaction.
package protocol ServerRecords: TransactionRecords, ProfileRecords, PINRecords, ReplyRecords, KeyRecords,
  AuthenticatorRecords
{}

package protocol TransactionRecords {
  func transaction(_ id: String) throws -> Transaction?
  /// Open transactions, newest first, ties by transaction id. Expired and unreadable ones are left out.
  func openTransactions(of clientID: ClientID, now: Timestamp) throws -> [Transaction]
  func openTransactionCount(of userID: UserID, on clientID: ClientID, now: Timestamp) throws -> Int
  func isOpen(_ id: String) throws -> Bool
  func insert(_ transaction: Transaction) throws
  /// Ends the transaction if it is open. Condition and change are one statement, so of two concurrent endings exactly
  /// one succeeds.
  /// - Returns: false if the transaction had ended before.
  func close(
    _ id: String, _ state: RequestState, _ reason: NotAuthenticatedReason?, _ transactionEnd: TransactionEnd?,
    now: Timestamp
  ) throws -> Bool
  func insertCallback(_ transactionID: String, url: String, of portal: String, dueAt: Timestamp) throws
  /// - Returns: the number of invalid answers to this transaction, including this one; 0 if it is not open.
  func countBadAnswer(to id: String) throws -> Int
  /// Counts a verified PIN attempt for this transaction.
  /// - Parameter nonce: the nonce that the next answer must contain.
  /// - Returns: false if the transaction is not open.
  func countPINAttempt(for id: String, nonce: String) throws -> Bool
  /// Counts a verified attempt with an authenticator other than the PIN for this transaction.
  /// - Parameter nonce: the nonce that the next answer must contain.
  /// - Returns: false if the transaction is not open.
  func countAuthenticatorAttempt(for id: String, nonce: String, method: ApprovalRequest.Method) throws -> Bool
  /// Starts a hold on the user's requests; an existing hold that ends later is kept.
  func hold(_ userID: UserID, until: Timestamp) throws
  /// Whether the device is connected to one of several servers that use these records; false if there is only one.
  func isConnected(_ device: ClientID, now: Timestamp) throws -> Bool
  /// Whether the device requests hints at the MQTT broker.
  func hasMailbox(_ device: ClientID) throws -> Bool
  /// - Returns: when the hold ends; nil if there is none.
  func holdEnd(of userID: UserID, now: Timestamp) throws -> Timestamp?
}

package protocol ProfileRecords {
  /// Finds deleted profiles too.
  func profile(_ id: ProfileID, on clientID: ClientID) throws -> Profile?
  func profile(of userID: UserID, on clientID: ClientID) throws -> Profile?
  /// The readable profiles of a user that are not deleted.
  func profiles(of userID: UserID) throws -> [Profile]
  /// The identifiers of all profiles of a device, including unreadable profiles.
  func profileNames(on clientID: ClientID) throws -> [ProfileName]
  /// Deleted profiles whose keys are still stored, newest first.
  func formerProfiles(on clientID: ClientID, limit: Int) throws -> [Profile]
  /// Replaces a deleted profile with the same id.
  func insertProfile(_ id: ProfileID, on clientID: ClientID, userID: UserID, activation: [UInt8], now: Timestamp) throws
  /// Marks the profile as deleted, keeps its keys as former keys, and removes its PIN verifier and access tokens.
  func removeProfile(_ profile: ProfileName, now: Timestamp) throws
  /// Removes the activation code, too, which would otherwise count as one of an interrupted enrollment.
  /// - Parameter byDevice: whether the device itself requested it, so that it need not be notified with "disenrolled"
  ///   later.
  func removePush(of profile: ProfileName, byDevice: Bool) throws
  /// Keeps the keys as former keys.
  func removeKeys(of profile: ProfileName) throws

  /// - Returns: nil if there is no such device; the name also of a deleted one.
  func deviceName(_ clientID: ClientID) throws -> String?
  /// Marks the device as deleted.
  /// - Returns: false if there is no such device, or it is deleted already.
  func removeDevice(_ clientID: ClientID, now: Timestamp) throws -> Bool

  /// - Returns: nil if there is none, or it has expired.
  func activationCode(_ hash: [UInt8], now: Timestamp) throws -> StoredActivationCode?
  func bindActivationCode(_ hash: [UInt8], to clientID: ClientID, profile: ProfileID?) throws
}

package protocol PINRecords {
  /// - Returns: the hash of the request of an attempt that was counted and not concluded; nil if there is none.
  func countedRequest(of attempt: PINAttempt) throws -> [UInt8]?
  /// Stores the attempt and adds one failure to its profile.
  func insert(_ attempt: PINAttempt, now: Timestamp) throws
  /// - Returns: false if there was no such attempt.
  func delete(_ attempt: PINAttempt) throws -> Bool
  /// Sets the failures of the profile to zero and deletes its attempts.
  func clearAttempts(of profile: ProfileName) throws
}

package protocol ReplyRecords {
  func storedReply(_ key: String, of clientID: ClientID) throws -> StoredReply?
  func insert(_ reply: StoredReply, key: String, clientID: ClientID, now: Timestamp) throws
  func replaceReply(_ key: String, of clientID: ClientID, to requestHash: [UInt8], body: [UInt8]) throws
}

package protocol KeyRecords {
  func insertAccessToken(
    _ hash: [UInt8], clientID: ClientID, profileID: ProfileID?, by origin: AccessTokenOrigin, expiresAt: Timestamp,
    now: Timestamp
  ) throws
  /// - Returns: the fingerprint of the key for all enrollments; nil if there is none.
  func sharedServerKey() throws -> String?
  func insertServerKey(_ fingerprint: String, sealedSecret: [UInt8], isShared: Bool) throws
  func serverKey(_ fingerprint: String) throws -> (sealedSecret: [UInt8], isShared: Bool)?
}
