// SPDX-License-Identifier: Apache-2.0
import Cryptography
import JSONValues
import Secrets
import Synchronization

/// The nodes of an authentication journey.
extension TestAM {
  package enum PushType: String, Sendable { case plain = "default", challenge, biometric }

  /// The message that the sender node passes to the push provider.
  package struct Push: Sendable {
    package let messageID: String
    package let message: String
    /// The number that the login page shows.
    package let number: Int?
    /// The numbers that the device offers; empty for other push types.
    package let candidates: [Int]
    /// The cookie for the answer.
    package let cookie: String
    let type: PushType

    /// `{messageId, message}`, as a delegate posts it.
    package var envelope: [UInt8] {
      Array(JSONValue.object(["messageId": .text(messageID), "message": .text(message)]).canonical.utf8)
    }
  }

  /// AM's message to Amazon SNS (`GCM` and `APNS` are texts).
  package func amazonForm(of push: Push) -> [UInt8] {
    let priority = version <= .am800 ? "PRIORITY" : "priority"
    let google: JSONValue = .object([
      priority: .text("high"),
      "data": .object(["message": .text(push.message), "messageId": .text(push.messageID)]),
    ])
    var alert: [String: JSONValue] = [
      "alert": .text("Login attempt"), "sound": .text("default"), "data": .text(push.message),
      "messageId": .text(push.messageID), "category": .text(push.type.category),
      "interruption-level": .text("time-sensitive"), "content-available": .integer(1),
    ]
    if version >= .am73 { alert["mutable-content"] = .integer(1) }
    let apple: JSONValue = .object(["aps": .object(alert)])
    return Array(
      JSONValue.object([
        "default": .text("Login attempt"), "GCM": .text(google.canonical), "APNS": .text(apple.canonical),
        "APNS_SANDBOX": .text(apple.canonical),
      ]).canonical.utf8)
  }

  /// The outcome of the result verifier.
  package enum Outcome: String, Sendable, Equatable { case isTrue = "true", isFalse = "false", waiting, expired }

  private func messageID(_ prefix: String) -> String { "\(prefix):\(Random.uuid())\(now())" }

  /// The registration node's QR code.
  /// - Parameters:
  ///   - oath: the query of the OATH part, for the combined node (7.3 and later): `secret=…&period=30`.
  ///   - policies: JSON.
  package func registrationURI(
    _ user: String, issuer: String = "Example", oath: String? = nil, policies: String? = nil
  ) -> String {
    precondition(version >= .am73 || oath == nil && policies == nil, "7.2 has neither")
    let (id, secret, challenge) = (messageID("REGISTER"), Random.bytes(32), Random.bytes(32))
    let cookie = "amlbcookie=01"
    state.withLock { state in
      state.tokens[id] = Token(
        user: user, secret: secret, expectedAnswer: Self.answer(to: challenge, secret),
        createdAt: now(), lifetime: lifetime, isRegistration: true, patience: registrationTimeout, cookie: cookie)
    }
    func coded(_ text: String) -> String { Array(text.utf8).base64URL }
    var query = [
      "l=\(coded(cookie))", "issuer=\(coded(issuer))", "m=\(id)", "s=\(secret.base64URL)",
      "c=\(challenge.base64URL)", "r=\(coded("\(endpoint)?_action=register"))",
      "a=\(coded("\(endpoint)?_action=authenticate"))",
    ]
    if version >= .am801 { query += ["uid=\(coded("uid-of-\(user)"))", "pid=\(coded(messageID("p")))"] }
    if let oath {
      query.append(oath)
      if version >= .am801 { query.append("oid=\(coded(messageID("o")))") }
    }
    query += ["b=032b75", "image="]
    if let policies { query.append("policies=\(coded(policies))") }
    let name = version >= .am73 ? issuer : "forgerock"
    let scheme = oath == nil ? "pushauth://push" : "mfauth://totp"
    return "\(scheme)/\(Self.percentEncoded(name)):\(Self.percentEncoded(user))?\(query.joined(separator: "&"))"
  }

  /// The registration node polls, as every few seconds since it showed the QR code: a registration becomes the user's
  /// device.
  /// - Returns: nil also if the device registered after the node's time limit, although it got status 200.
  package func finishRegistration(of user: String) -> Profile? {
    state.withLock { state in
      guard
        let (id, token) = state.tokens.first(where: {
          $0.value.user == user && $0.value.isRegistration && $0.value.phase == .accepted
            && $0.value.expiresAt >= now()
        }), let device = token.device, let answeredAt = token.answeredAt,
        answeredAt <= token.createdAt + token.patience * 1000
      else { return nil }
      state.tokens[id] = nil
      // A user has one device; the node reports success for a second one without storing it.
      if !state.profiles.contains(where: { $0.user == user }) { state.profiles.append(device) }
      return device
    }
  }

  /// The sender node.
  /// - Parameters:
  ///   - timeout: the node's setting in seconds; AM deletes the message after `mdDuration` in any case.
  ///   - payload: the text that the journey's script puts into the message, as AM prints it.
  ///   - isLegacy: whether to send the form of AM before 7.2.
  /// - Returns: nil if the user has no device.
  package func send(
    _ user: String, _ type: PushType = .plain, timeout: Int64 = 120, payload: String = "{  }", isLegacy: Bool = false
  ) -> Push? {
    guard let profile = profiles.first(where: { $0.user == user }) else { return nil }
    let (id, challenge, time) = (messageID("AUTHENTICATE"), Random.bytes(32), now())
    let number = type == .challenge ? Int.random(in: 10...99) : nil
    let candidates = number.map(Self.candidates) ?? []
    let cookie = state.withLock { state in
      let cookie = state.nextCookie()
      state.tokens[id] = Token(
        user: user, secret: profile.secret, expectedAnswer: Self.answer(to: challenge, profile.secret),
        createdAt: time, lifetime: lifetime, isRegistration: false, patience: timeout, cookie: cookie)
      return cookie
    }
    var claims: [(String, JSONValue)] = [
      ("c", .text(challenge.base64)), ("t", .text("\(timeout)")),
      ("u", profile.mechanismUID.map { JSONValue.text($0) } ?? .null),
      ("l", .text(Array(cookie.utf8).base64)),
    ]
    if !isLegacy {
      claims += [
        ("i", .text("\(time)")), ("m", .text("Login attempt from \(user) at Example")), ("k", .text(type.rawValue)),
        ("p", .text(payload)),
      ]
      if number != nil { claims.append(("n", .text(candidates.map(String.init).joined(separator: ",")))) }
      claims.append(("x", .text(#"{"remoteIp":"198.51.100.7","userAgent":"Mozilla/5.0"}"#)))
      if version >= .am801 { claims.append(("d", .text("uid-of-\(user)"))) }
    }
    let secret = SecretBytes(copying: profile.secret)
    let header: [(String, JSONValue)] = [("typ", .text("JWT")), ("alg", .text("HS256"))]
    // Old AM pretty-prints the JSON.
    let blank = isLegacy ? " " : ""
    let jwt = JWS.sign(
      header: Array(Self.json(header, blank).utf8), payload: Array(Self.json(claims, blank).utf8), secret: secret)
    return Push(messageID: id, message: jwt, number: number, candidates: candidates, cookie: cookie, type: type)
  }

  /// Three numbers in order, including the right one.
  private static func candidates(with number: Int) -> [Int] {
    var numbers: Set = [number]
    while numbers.count < 3 { numbers.insert(Int.random(in: 10...99)) }
    return numbers.sorted()
  }

  /// Another poll has consumed the answer.
  package func forget(_ push: Push) { state.withLock { $0.tokens[push.messageID] = nil } }

  /// The result verifier polls, and consumes the answer.
  package func verify(_ push: Push, type: PushType = .plain) -> Outcome {
    verify(push.messageID, number: type == .challenge ? push.number : nil)
  }

  /// - Parameter number: the number on the login page, for a push type that has one.
  package func verify(_ messageID: String, number: Int?) -> Outcome {
    state.withLock { state in
      guard let token = state.tokens[messageID], token.expiresAt >= now() else { return .expired }
      switch token.phase {
      case .waiting:
        let firstPolledAt = token.firstPolledAt ?? now()
        state.tokens[messageID]?.firstPolledAt = firstPolledAt
        // The token is kept: a device that answers late still gets status 200.
        return now() - firstPolledAt > token.patience * 1000 ? .expired : .waiting
      case .denied:
        state.tokens[messageID] = nil
        return .isFalse
      case .accepted:
        state.tokens[messageID] = nil
        // A gap in AM: an answer without a number counts as right.
        guard let answered = token.challengeResponse, let number else { return .isTrue }
        return answered == Int64(number) ? .isTrue : .isFalse
      }
    }
  }
}

extension TestAM.PushType {
  /// Apple's name for the category of a notification.
  fileprivate var category: String {
    switch self {
    case .plain: "authentication"
    case .challenge: "authentication_challenge"
    case .biometric: "authentication_biometric"
    }
  }
}
