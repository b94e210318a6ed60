// SPDX-License-Identifier: Apache-2.0

/// A stored activation code and its use.
package struct StoredActivationCode: Sendable {
  package let userID: UserID
  /// The device that used it first; nil if unused.
  package let clientID: ClientID?
  package let profileID: ProfileID?

  package init(userID: UserID, clientID: ClientID?, profileID: ProfileID?) {
    self.userID = userID
    self.clientID = clientID
    self.profileID = profileID
  }
}

package enum Activation: Sendable {
  case wrongCode, profileInUse
  case activated(userID: UserID, Effects)
}

extension ServerRecords {
  /// Creates a user's profile on a device. The same code, device and profile id again succeed without a change while
  /// the enrollment may have been interrupted (`isActivationRepeatable`); a new code replaces the user's profile on
  /// this device.
  /// - Parameter code: the keyed hash of the code; nil for text that cannot be a code.
  package func activate(_ code: [UInt8]?, as profileID: ProfileID, on clientID: ClientID, now: Timestamp) throws
    -> Activation
  {
    guard let code, let stored = try activationCode(code, now: now),
      stored.clientID == nil || stored.clientID == clientID,
      stored.profileID == nil || stored.profileID == profileID
    else { return .wrongCode }
    let inPlace = try profile(profileID, on: clientID).flatMap { $0.isDeleted ? nil : $0 }
    if let inPlace, inPlace.userID != stored.userID { return .profileInUse }
    if let inPlace, inPlace.activation == code {
      guard inPlace.isActivationRepeatable(at: now) else { return .wrongCode }
      return .activated(userID: stored.userID, Effects())
    }
    // The profile of this code was deleted since: a repeated message must not restore it.
    guard stored.profileID == nil else { return .wrongCode }
    var effects = Effects()
    if let older = try profile(of: stored.userID, on: clientID) {
      effects = try deleteProfile(older.name, now: now)
    }
    try insertProfile(profileID, on: clientID, userID: stored.userID, activation: code, now: now)
    try bindActivationCode(code, to: clientID, profile: profileID)
    return .activated(userID: stored.userID, effects)
  }
}

extension Profile {
  /// How long after the activation a complete enrollment may be repeated: a power loss may have come before the device
  /// stored its end.
  package static let activationRepeatableFor = Duration.seconds(1800)

  /// Whether the activation code still counts for this profile. Afterwards the device logs in with the PIN: a code that
  /// is found later must not open what the PIN protects.
  fileprivate func isActivationRepeatable(at now: Timestamp) -> Bool {
    // Whatever removes push or keys deletes the code; earlier versions of the server left it.
    if isDisenrolled || formerCertificate != nil { return false }
    return !isEnrolledForPush || now < createdAt + Self.activationRepeatableFor
  }
}
