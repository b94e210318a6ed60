// SPDX-License-Identifier: Apache-2.0
package import ReferenceProtocol

/// A user on a device, with the state of mobile authentication.
package struct Profile: Sendable {
  package let clientID: ClientID
  package let id: ProfileID
  package let userID: UserID
  package let activation: [UInt8]
  package let createdAt: Timestamp
  /// Binary OpenPGP certificate of the device for this profile.
  package let certificate: [UInt8]?
  package let certificateFingerprint: String?
  package let serverKey: String?
  package let keyID: String?
  package let isAcknowledged: Bool
  package let pushToken: String?
  /// The portal removed the keys or the push enrollment, and the device has not enrolled again yet.
  package let isDisenrolled: Bool
  package let isDeleted: Bool
  /// Keys of a removed enrollment.
  package let formerCertificate: [UInt8]?
  package let formerServerKey: String?
  /// The PIN verifier; nil without a PIN.
  package let knowledge: PINVerifierRecord?
  /// The registered authenticators other than the PIN.
  package let authenticators: [RegisteredAuthenticator]
  /// What the device announced, as JSON: only few requests read it.
  private let announcedCapabilities: String?

  package init(
    clientID: ClientID, id: ProfileID, userID: UserID, activation: [UInt8], createdAt: Timestamp, certificate: [UInt8]?,
    certificateFingerprint: String?, serverKey: String?, keyID: String?, isAcknowledged: Bool, pushToken: String?,
    isDisenrolled: Bool, isDeleted: Bool, formerCertificate: [UInt8]?, formerServerKey: String?,
    knowledge: PINVerifierRecord?, authenticators: [RegisteredAuthenticator] = [],
    announcedCapabilities: String? = nil
  ) {
    self.clientID = clientID
    self.id = id
    self.userID = userID
    self.activation = activation
    self.createdAt = createdAt
    self.certificate = certificate
    self.certificateFingerprint = certificateFingerprint
    self.serverKey = serverKey
    self.keyID = keyID
    self.isAcknowledged = isAcknowledged
    self.pushToken = pushToken
    self.isDisenrolled = isDisenrolled
    self.isDeleted = isDeleted
    self.formerCertificate = formerCertificate
    self.formerServerKey = formerServerKey
    self.knowledge = knowledge
    self.authenticators = authenticators
    self.announcedCapabilities = announcedCapabilities
  }

  /// The capabilities of the device; nil if they are unreadable.
  package var capabilities: ApprovalCapabilities? {
    announcedCapabilities.flatMap { try? JSON.decode(ApprovalCapabilities.self, from: Array($0.utf8)) }
  }

  package var hasKeys: Bool { certificate != nil && isAcknowledged }
  package var isEnrolledForPush: Bool { hasKeys && pushToken != nil }
  package var hasPIN: Bool { knowledge?.isActive == true }

  package var name: ProfileName { ProfileName(clientID: clientID, id: id) }
}

/// The identifiers of a profile, which are readable even if other columns are not.
package struct ProfileName: Sendable, Hashable {
  package let clientID: ClientID
  package let id: ProfileID

  package init(clientID: ClientID, id: ProfileID) {
    self.clientID = clientID
    self.id = id
  }
}
