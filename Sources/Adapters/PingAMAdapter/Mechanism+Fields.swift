// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Secrets

/// The fields of the stored credentials.
enum MechanismTag: UInt16 {
  case secret = 1, uid, issuer, accountName, registrationURL, authenticationURL, cookie, userID, resourceID,
    codesWantPIN, messageID, challenge
}

extension Mechanism.Metadata {
  /// - Returns: nil if a member is missing.
  init?(_ fields: SecretFields, _ account: AccountRecord) {
    guard let uid = fields.text(MechanismTag.uid), let issuer = fields.text(MechanismTag.issuer),
      let accountName = fields.text(MechanismTag.accountName),
      let registrationURL = fields.text(MechanismTag.registrationURL),
      let authenticationURL = fields.text(MechanismTag.authenticationURL), let delivery = account.delivery
    else { return nil }
    self.init(
      uid: uid, issuer: issuer, accountName: accountName, registrationURL: registrationURL,
      authenticationURL: authenticationURL, deviceToken: delivery.mailbox)
    cookie = fields.text(MechanismTag.cookie)
    userID = fields.text(MechanismTag.userID)
    resourceID = fields.text(MechanismTag.resourceID)
    policies = account.policies
    wantedDeviceToken = delivery.wanted
    pinLength = account.pin?.length
    codesWantPIN = fields[MechanismTag.codesWantPIN].map { _ in true }
    guard let messageID = fields.text(MechanismTag.messageID), let challenge = fields[MechanismTag.challenge] else {
      return
    }
    registration = Mechanism.Registration(messageID: messageID, challenge: challenge.withExposedSecret { Array($0) })
  }

  func write(to fields: inout SecretFields) {
    fields.set(MechanismTag.uid, text: uid)
    fields.set(MechanismTag.issuer, text: issuer)
    fields.set(MechanismTag.accountName, text: accountName)
    fields.set(MechanismTag.registrationURL, text: registrationURL)
    fields.set(MechanismTag.authenticationURL, text: authenticationURL)
    fields.set(MechanismTag.cookie, text: cookie)
    fields.set(MechanismTag.userID, text: userID)
    fields.set(MechanismTag.resourceID, text: resourceID)
    fields.set(MechanismTag.codesWantPIN, text: codesWantPIN == true ? "" : nil)
    fields.set(MechanismTag.messageID, text: registration?.messageID)
    fields[MechanismTag.challenge] = registration.map { SecretBytes(copying: $0.challenge) }
  }
}
