// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTP
import JSONValues
import MobileAuth
import Synchronization

@testable import PrivacyIDEAAdapter

/// A push server in memory that follows the specification and verifies every request.
final class FakePushServer: Sendable {
  enum Product { case privacyIDEA, eduMFA }

  struct Challenge: Sendable {
    var serial: String
    var fields: [String: String] = [:]
    var isOpen = true
    var presence: String?
    /// The option that the portal shows.
    var rightAnswer: String?
    var displayCode: String?
    var answers: [String] = []
  }

  struct State: Sendable {
    /// Enrollment credentials by serial; removed at the first success.
    var credentials: [String: String] = [:]
    var keys: [String: RSAPublicKey] = [:]
    var challenges: [Challenge] = []
    /// The times of the requests.
    var polls: [MonotonicInstant] = []
    /// The number of polls per serial.
    var pollCounts: [String: Int] = [:]
    /// The values of `fbtoken` in enrollments.
    var gatewayAddresses: [String] = []
    var failures: [HTTPResponse] = []
    var drift: Duration = .zero
    /// Whether responses have the server's time.
    var sendsTime = true
    /// The difference of a proxy's clock, from which `Date` comes, to the server's; nil for no `Date`.
    var dateDrift: Duration? = .zero
    var isPollingForbidden: Set<String> = []
    /// Whether no enabled policy has the address for answers: polls are then refused as those of unknown tokens.
    var hasNoRegistrationURL = false
    /// Serials of tokens whose keys this server cannot use.
    var isBroken: Set<String> = []
    /// The number of bytes missing at the end of a list, as of a list that exceeds the client's limit.
    var missingBytes: Int?
  }

  static let endpoint = "https://pi.example/ttype/push"
  /// One key for all tokens, because generating 4096 bits each time would dominate the tests' duration.
  static let signingKey = try! RSAPrivateKey(bits: 2048)

  let state = Mutex(State())
  let product: Product
  private let clock: any TokenClock

  init(_ product: Product = .privacyIDEA, clock: any TokenClock) {
    self.product = product
    self.clock = clock
  }

  /// - Returns: an enrollment URL.
  func prepare(_ serial: String, more: String = "") -> String {
    let credential = Random.bytes(20).lowercaseHex
    state.withLock { $0.credentials[serial] = credential }
    return "otpauth://pipush/\(serial)?url=https%3A//pi.example/ttype/push&ttl=10&issuer=privacyIDEA"
      + "&enrollment_credential=\(credential)&v=1&serial=\(serial)&sslverify=1&poll_only=True\(more)"
  }

  /// Starts a login at the portal.
  /// - Returns: the nonce.
  @discardableResult
  func challenge(
    _ serial: String, _ changes: [String: String] = [:], presence: String? = nil, right: String? = nil,
    code: String? = nil
  ) -> String {
    let nonce = Random.bytes(20).base32
    var fields = ["nonce": nonce, "serial": serial]
    fields.merge(changes) { $1 }
    fields["require_presence"] = presence
    let challenge = Challenge(
      serial: serial, fields: fields, presence: presence, rightAnswer: right, displayCode: code)
    state.withLock { $0.challenges.append(challenge) }
    return nonce
  }

  /// The signed texts that answered the challenge.
  func answers(to nonce: String) -> [String] {
    state.withLock { state in state.challenges.first { $0.fields["nonce"] == nonce }?.answers ?? [] }
  }

  func end(_ nonce: String) {
    state.withLock { state in
      for index in state.challenges.indices where state.challenges[index].fields["nonce"] == nonce {
        state.challenges[index].isOpen = false
      }
    }
  }

  func respond(to request: HTTPRequest) -> HTTPResponse {
    let now = clock.wallClockMilliseconds + state.withLock { $0.drift }.milliseconds
    var response: HTTPResponse
    if let failure = state.withLock({ $0.failures.isEmpty ? nil : $0.failures.removeFirst() }) {
      response = failure
    } else if request.method == .get {
      response = poll(request.url, now)
    } else {
      response = post(JSONValue(parsing: request.body)!)
    }
    if state.withLock({ $0.sendsTime }), case .object(var body)? = JSONValue(parsing: response.body) {
      body["time"] = .fraction(Double(now) / 1000)
      response.body = Array(JSONValue.object(body).canonical.utf8)
    }
    if request.method == .get, let missing = state.withLock({ $0.missingBytes }) {
      response.body.removeLast(min(missing, response.body.count))
      response.isTruncated = true
    }
    response.headers["Date"] = state.withLock { $0.dateDrift }.map { httpDate(now + $0.milliseconds) }
    return response
  }

  private func poll(_ url: String, _ now: Int64) -> HTTPResponse {
    state.withLock { $0.polls.append(clock.now) }
    guard let mark = url.firstIndex(of: "?") else { return Self.error(400, 905) }
    let pairs = url[url.index(after: mark)...].split(separator: "&").map { $0.split(separator: "=", maxSplits: 1) }
    let query = Dictionary(uniqueKeysWithValues: pairs.map { (String($0[0]), String($0[1])) })
    guard let serial = query["serial"], let stamp = query["timestamp"], let signature = query["signature"] else {
      return Self.error(400, 905)
    }
    let isBroken = state.withLock { state in
      state.pollCounts[serial, default: 0] += 1
      return state.isBroken.contains(serial)
    }
    if isBroken { return Self.error(500, -500) }
    guard let sent = milliseconds(of: stamp), abs(sent - now) <= 60_000 else {
      return Self.error(400, 10, "ERR10: Timestamp \(stamp) not in valid range.")
    }
    return state.withLock { state in
      guard
        state.keys[serial]?.isValidSignature(
          onTheWire: signature.replacing("%3D", with: "="), for: "\(serial)|\(stamp)") == true
      else { return Self.error(400, 10) }
      if state.isPollingForbidden.contains(serial) { return Self.error(403, 303) }
      if state.hasNoRegistrationURL { return Self.error(400, 10) }
      let open = state.challenges.filter { $0.serial == serial && $0.isOpen }
      return Self.value(.list(open.map { element($0) }))
    }
  }

  private func element(_ challenge: Challenge) -> JSONValue {
    var fields = [
      "url": Self.endpoint, "question": "Do you want to confirm the login?", "title": "privacyIDEA", "sslverify": "1",
    ]
    fields.merge(challenge.fields) { $1 }
    let names = ["nonce", "url", "serial", "question", "title", "sslverify", "require_presence"]
    var members = fields.mapValues { JSONValue.text($0) }
    members["signature"] = .text(Self.sign(names.compactMap { fields[$0] }.joined(separator: "|")))
    if product == .privacyIDEA {
      members["capabilities"] = .text("{\"decline_reason\": true}")
      members["capabilities_signature"] = .text(
        Self.sign("{\"capabilities\":{\"decline_reason\":true},\"nonce\":\"\(fields["nonce"]!)\"}"))
    }
    return .object(members)
  }

  private func post(_ body: JSONValue) -> HTTPResponse {
    guard let serial = body["serial"]?.text else { return Self.error(400, 905) }
    return body["pubkey"] == nil ? answer(serial, body) : enroll(serial, body)
  }

  private func enroll(_ serial: String, _ body: JSONValue) -> HTTPResponse {
    state.withLock { state in
      guard let credential = state.credentials[serial] else { return Self.error(404, 601) }
      guard body["enrollment_credential"]?.text == credential else { return Self.error(400, 905) }
      guard let gatewayAddress = body["fbtoken"]?.text, let text = body["pubkey"]?.text, let der = bytes(base64: text)
      else {
        return Self.error(400, 905)
      }
      state.gatewayAddresses.append(gatewayAddress)
      state.credentials[serial] = nil
      state.keys[serial] = try? RSAPublicKey(subjectPublicKeyInfo: der)
      let key = Self.signingKey.publicKey.pkcs1.base64
      let wrapped = stride(from: 0, to: key.count, by: 64).map { String(key.dropFirst($0).prefix(64)) }
      return Self.value(
        .bool(true),
        detail: .object([
          "serial": .text(serial), "rollout_state": .text("enrolled"),
          "public_key": .text(wrapped.joined(separator: "\n")),
        ]))
    }
  }

  private func answer(_ serial: String, _ body: JSONValue) -> HTTPResponse {
    state.withLock { state in
      guard let key = state.keys[serial] else { return Self.error(404, 601) }
      guard let signature = body["signature"]?.text, product == .privacyIDEA || body["nonce"] != nil else {
        return Self.error(400, 905)
      }
      let isDecline = body["decline"]?.text == "1"
      let reason = product == .privacyIDEA ? body["decline_reason"]?.text : nil
      let more = isDecline ? ["decline"] + (reason.map { [$0] } ?? []) : []
      for index in state.challenges.indices where state.challenges[index].serial == serial {
        guard state.challenges[index].isOpen || product == .eduMFA else { continue }
        let presence = isDecline ? [] : (body["presence_answer"]?.text).map { [$0] } ?? []
        let text = ([state.challenges[index].fields["nonce"]!, serial] + more + presence).joined(separator: "|")
        guard key.isValidSignature(onTheWire: signature, for: text) else { continue }
        state.challenges[index].answers.append(text)
        if !isDecline, let right = state.challenges[index].rightAnswer, presence != [right] { break }
        state.challenges[index].isOpen = false
        let code = isDecline ? nil : state.challenges[index].displayCode
        return Self.value(
          .bool(true), detail: code.map { .object(["display_code": .text($0), "message": .text("Enter the code")]) })
      }
      return Self.value(.bool(false))
    }
  }

  private static func sign(_ text: String) -> String { try! signingKey.signature(for: Array(text.utf8)).base32 }

  private static func value(_ value: JSONValue, detail: JSONValue? = nil) -> HTTPResponse {
    var body: [String: JSONValue] = ["result": .object(["status": .bool(true), "value": value])]
    body["detail"] = detail
    return HTTPResponse(status: 200, body: Array(JSONValue.object(body).canonical.utf8))
  }

  static func error(_ status: Int, _ code: Int64, _ message: String? = nil) -> HTTPResponse {
    let error = JSONValue.object(["code": .integer(code), "message": .text(message ?? "ERR\(code)")])
    let body = JSONValue.object(["detail": .null, "result": .object(["status": .bool(false), "error": error])])
    return HTTPResponse(status: status, body: Array(body.canonical.utf8))
  }

  /// Parses a time stamp in the form of `timeStamp`.
  private func milliseconds(of stamp: String) -> Int64? {
    let fields = stamp.split(whereSeparator: { !$0.isNumber }).compactMap { Int64($0) }
    guard fields.count == 7, stamp.hasSuffix("Z") else { return nil }
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    let date = "Sun, \(fields[2]) \(months[Int(fields[1]) - 1]) \(fields[0]) \(fields[3]):\(fields[4]):\(fields[5]) GMT"
    return unixSeconds(httpDate: date).map { $0 * 1000 + fields[6] }
  }

  private func httpDate(_ milliseconds: Int64) -> String {
    let stamp = timeStamp(milliseconds)
    let parts = stamp.split(whereSeparator: { "-T.".contains($0) }).map(String.init)
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    return "Sun, \(parts[2]) \(months[Int(parts[1])! - 1]) \(parts[0]) \(parts[3]) GMT"
  }
}
