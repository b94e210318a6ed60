import JSONValues

extension Mechanism {
  /// What AM is told of this device. Anything but `apns` it takes for Google's, and the rest it stores unread: a delegate
  /// has nothing to choose there.
  var device: [String: JSONValue] {
    [
      "deviceId": .text(facts.wantedDeviceToken ?? facts.deviceToken), "deviceType": .text("android"),
      "communicationType": .text("gcm"),
    ]
  }

  func registration(_ ticket: PushRegistrationTicket, deviceName: String) -> [UInt8] {
    var claims = device
    claims["response"] = .text(secret.answer(to: ticket.challenge))
    claims["mechanismUid"] = .text(facts.uid)
    claims["deviceName"] = .text(deviceName)
    return secret.body(messageID: ticket.messageID, claims)
  }

  /// - Returns: nil if AM never told its name for the person.
  func refresh(deviceName: String) -> [UInt8]? {
    guard let userID = facts.userID else { return nil }
    var claims = device
    claims["deviceName"] = .text(deviceName)
    let body: [String: JSONValue] = [
      "mechanismUid": .text(facts.uid), "username": .text(userID), "jwt": .text(secret.token(claims)),
    ]
    return Array(JSONValue.object(body).canonical.utf8)
  }
}
