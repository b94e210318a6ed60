// SPDX-License-Identifier: Apache-2.0
import JSONValues
import MobileAuth
import PINProtection
import Secrets

/// The former encoding of an account: "pingam 1", JSON, and the secret.
struct FormerMechanism {
  /// The members in the JSON.
  fileprivate struct Members: Decodable {
    struct Registration: Decodable {
      let messageID: String
      let challenge: [UInt8]
    }

    let uid: String
    let issuer: String
    let accountName: String
    let registrationURL: String
    let authenticationURL: String
    let cookie: String?
    let userID: String?
    let resourceID: String?
    let policies: String?
    let lockedBy: String?
    let deviceToken: String
    let wantedDeviceToken: String?
    let pinLength: Int?
    let codesWantPIN: Bool?
    let registration: Registration?
  }

  let mechanism: Mechanism
  /// The policy with which the user has locked the account; nil if the user has not.
  let lockedBy: String?

  /// - Throws: `.corrupt` if the account is not in this format.
  init(_ account: AccountRecord) throws(StateStoreError) {
    let corrupt = StateStoreError.corrupt(.keys(of: account.id))
    guard let parts = account.secrets.parts(), parts.count == 3, parts[0].publicText == "pingam 1" else {
      throw corrupt
    }
    let members: Members
    // Its numbers are bytes, and the length of a PIN.
    do {
      members = try JSONMessage.decode(
        Members.self, from: parts[1].withExposedSecret { Array($0) }, numbers: 0...Int64(UInt8.max))
    } catch { throw corrupt }
    if let length = members.pinLength, !PINPolicy.lengths.contains(length) { throw corrupt }
    mechanism = Mechanism(metadata: Mechanism.Metadata(members), secret: SharedSecret(bytes: parts[2]))
    lockedBy = members.lockedBy
  }
}

extension Mechanism.Metadata {
  fileprivate init(_ members: FormerMechanism.Members) {
    self.init(
      uid: members.uid, issuer: members.issuer, accountName: members.accountName,
      registrationURL: members.registrationURL, authenticationURL: members.authenticationURL, cookie: members.cookie,
      userID: members.userID, resourceID: members.resourceID, policies: members.policies,
      deviceToken: members.deviceToken, wantedDeviceToken: members.wantedDeviceToken, pinLength: members.pinLength,
      codesWantPIN: members.codesWantPIN,
      registration: members.registration.map {
        Mechanism.Registration(messageID: $0.messageID, challenge: $0.challenge)
      })
  }
}
