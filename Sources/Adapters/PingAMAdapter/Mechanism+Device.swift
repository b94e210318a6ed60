// SPDX-License-Identifier: Apache-2.0
import JSONValues
import RegistrationURIs

extension Mechanism {
  /// The description of this device for AM. AM treats every `communicationType` other than `apns` as Google's and
  /// stores the other members without reading them; a push delegate has no choice to make.
  var device: [String: JSONValue] {
    [
      "deviceId": .text(metadata.wantedDeviceToken ?? metadata.deviceToken), "deviceType": .text("android"),
      "communicationType": .text("gcm"),
    ]
  }

  func registration(_ ticket: PushRegistrationTicket, deviceName: String) -> [UInt8] {
    var claims = device
    claims["response"] = .text(secret.answer(to: ticket.challenge))
    claims["mechanismUid"] = .text(metadata.uid)
    claims["deviceName"] = .text(deviceName)
    return secret.body(messageID: ticket.messageID, claims)
  }

  /// The body of a request that changes the mailbox at AM.
  /// - Returns: nil if AM never sent its user ID.
  func refresh(deviceName: String) -> [UInt8]? {
    guard let userID = metadata.userID else { return nil }
    var claims = device
    claims["deviceName"] = .text(deviceName)
    let body: [String: JSONValue] = [
      "mechanismUid": .text(metadata.uid), "username": .text(userID), "jwt": .text(secret.token(claims)),
    ]
    return Array(JSONValue.object(body).canonical.utf8)
  }
}
