// SPDX-License-Identifier: Apache-2.0
import Cryptography
import JSONValues
import Synchronization

/// `push/sns/message`: the endpoint for devices.
extension TestAM {
  package struct Answer: Sendable, Equatable {
    package let status: Int
    package let body: String

    package static let notFound = error(404, "Not Found")
    static let badRequest = error(400, "Bad Request")
    static let done = Answer(status: 200, body: "{}")

    static func error(_ status: Int, _ reason: String) -> Answer {
      Answer(status: status, body: #"{"code":\#(status),"reason":"\#(reason)","message":"\#(reason)."}"#)
    }
  }

  /// - Parameters:
  ///   - target: path and query, as they follow host and port.
  ///   - headers: names in lower case.
  package func respond(method: String, target: String, headers: [String: String], body: [UInt8]) -> Answer {
    let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
    let ours = [false, true].map { isFull in
      String(endpoint(namingRealmInFull: isFull).drop { $0 != "/" }.dropFirst(2).drop { $0 != "/" })
    }
    guard let path = parts.first, ours.contains(path) else { return .notFound }
    if let refusal = Self.versionRefusal(headers["accept-api-version"]) { return refusal }
    let query = (parts.count > 1 ? parts[1] : "").split(separator: "&")
    let action = query.first { $0.hasPrefix("_action=") }?.dropFirst("_action=".count)
    guard method == "POST", let action, actions.contains(String(action)) else { return .error(501, "Not Implemented") }
    guard headers["content-type"]?.hasPrefix("application/json") == true,
      let value = JSONValue(parsing: body), case .object = value
    else { return .badRequest }
    if let jwt = value["jwt"]?.text { state.withLock { $0.received.append(jwt) } }
    // A refresh has only one error response.
    if action == "refresh" { return (try? refresh(value)) == true ? .done : .badRequest }
    do { return try handle(value, cookie: headers["cookie"]) } catch { return .error(500, "Internal Server Error") }
  }

  private var actions: Set<String> {
    version >= .am801 ? ["register", "authenticate", "refresh"] : ["register", "authenticate"]
  }

  /// `resource=1.0, protocol=1.0`.
  private static func versionRefusal(_ header: String?) -> Answer? {
    for field in (header ?? "").split(separator: ",") {
      let pair = field.split(separator: "=").map { $0.filter { $0 != " " } }
      guard pair.count == 2 else { return .error(400, "Bad Request") }
      switch pair[0] {
      case "resource": if !["1", "1.0"].contains(pair[1]) { return .notFound }
      case "protocol":
        if !["1", "2"].contains(pair[1].prefix { $0 != "." }) { return .error(400, "Bad Request") }
      default: return .error(400, "Bad Request")
      }
    }
    return nil
  }

  /// Handles registration and authentication: the message ID identifies the operation, not the action.
  private func handle(_ body: JSONValue, cookie: String?) throws -> Answer {
    guard let id = body["messageId"]?.text else { return .badRequest }
    guard ["REGISTER:", "AUTHENTICATE:"].contains(where: id.hasPrefix) else { throw SignedToken.TokenError() }
    return try state.withLock { state -> Answer in
      guard state.hasPushService else { return .notFound }
      guard var token = state.tokens[id], token.expiresAt >= now() else { return .badRequest }
      if cookie != token.cookie { state.strays += 1 }
      // The record of a registration that was answered has no predicates any more.
      guard !token.isRegistration || token.phase == .waiting else { return .badRequest }
      guard let jwt = body["jwt"]?.text else { throw SignedToken.TokenError() }
      let signed = try SignedToken(jwt)
      guard signed.isSigned(with: token.secret) else { return .badRequest }
      let claims = signed.claims
      guard let response = claims["response"]?.text else { throw SignedToken.TokenError() }
      guard constantTimeEqual(Array(response.utf8), Array(token.expectedAnswer.utf8)) else { return .badRequest }
      if token.isRegistration {
        guard let device = try Self.device(claims, token, state) else { return .badRequest }
        token.device = device
      } else {
        token.challengeResponse = try Self.number(claims["challengeResponse"])
      }
      let isDenied = !token.isRegistration && (claims["deny"].map { $0 != .null } ?? false)
      token.phase = isDenied ? .denied : .accepted
      token.answeredAt = now()
      state.tokens[id] = token
      return .done
    }
  }

  /// Requires only the kind of the device's push service. The push provider checks whether the device exists.
  /// - Returns: nil if the provider refuses the device.
  private static func device(_ claims: JSONValue, _ token: Token, _ state: State) throws -> Profile? {
    guard let type = try text(claims["communicationType"]) else { throw SignedToken.TokenError() }
    let (uid, deviceType) = (try text(claims["mechanismUid"]), try text(claims["deviceType"]))
    guard let device = try text(claims["deviceId"]), state.providerTakes(device) else { return nil }
    return Profile(
      user: token.user, mechanismUID: uid, deviceID: device, communicationType: type, deviceType: deviceType,
      deviceName: "Push Device", secret: token.secret)
  }

  private static func text(_ claim: JSONValue?) throws -> String? {
    guard let claim, claim != .null else { return nil }
    guard let text = claim.text else { throw SignedToken.TokenError() }
    return text
  }

  private static func number(_ claim: JSONValue?) throws -> Int64? {
    guard let claim, claim != .null else { return nil }
    guard let number = claim.integer ?? claim.text.flatMap({ Int64($0) }) else { throw SignedToken.TokenError() }
    return number
  }

  /// 8.0.1 and later. AM requires both names, though its published schema has only one.
  private func refresh(_ body: JSONValue) throws -> Bool {
    guard let uid = body["mechanismUid"]?.text, let user = body["username"]?.text, let jwt = body["jwt"]?.text else {
      return false
    }
    return try state.withLock { state in
      guard
        let index = state.profiles.firstIndex(where: { $0.mechanismUID == uid && "uid-of-\($0.user)" == user }),
        let signed = try? SignedToken(jwt), signed.isSigned(with: state.profiles[index].secret)
      else { return false }
      let claims = signed.claims
      guard let device = try Self.text(claims["deviceId"]), let type = try Self.text(claims["communicationType"]),
        state.providerTakes(device)
      else { return false }
      state.profiles[index].deviceID = device
      state.profiles[index].communicationType = type
      state.profiles[index].deviceType = try Self.text(claims["deviceType"])
      state.profiles[index].deviceName = try Self.text(claims["deviceName"]) ?? state.profiles[index].deviceName
      return true
    }
  }
}
