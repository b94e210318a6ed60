// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTP
import JSONValues
import MobileAuth
import ServerBackends

/// An HTTP client for one push endpoint. There is no session: every message is authenticated by its own signature.
struct PushClient: Sendable {
  /// Name and version for the `User-Agent` header; the server's administrator can match them in policies.
  static let userAgent = "approval-token/0.1.0"
  /// Bytes; about 400 open challenges.
  private static let longestList = 1 << 20
  /// Elements of a list; the rest, which is newer, is ignored.
  private static let mostChallenges = 2000
  /// The elements of `result.value` are inside two objects and one array.
  private static let listDepth = 3

  /// `https://host[:port]/path`
  let endpoint: String
  let http: any HTTPTransport
  let clock: ResponseClock

  /// A list of open challenges, not verified.
  struct List: Sendable, Equatable {
    var elements: [JSONValue]
    /// The clock error of the first attempt, if a second attempt was necessary.
    var correctedClock: Duration?
  }

  /// Registers the token's public key.
  /// - Parameters:
  ///   - publicKey: as `DeviceKey.publicKeyOnTheWire`.
  ///   - gatewayAddress: the token's address for a push gateway; nil without an MQTT subscriber.
  /// - Returns: the server's public key for this token, which the server sends only once.
  func enroll(
    serial: String, credential: String, publicKey: String, gatewayAddress: String?
  ) async throws(TokenServerError) -> RSAPublicKey {
    let body = JSONValue.object([
      "serial": .text(serial), "enrollment_credential": .text(credential), "pubkey": .text(publicKey),
      "fbtoken": .text(gatewayAddress ?? "no_firebase_token"), "capabilities": .text("[\"decline_reason\"]"),
    ])
    // The server generates a 4096-bit key before it responds.
    let response = try await post(body.canonical, to: endpoint, deadline: .seconds(60))
    guard response.status == 200, case .value(.bool(true), let detail?)? = Reply(response) else {
      throw response.status == 200
        ? .unreachable("the token server's answer has an unknown form") : TokenServerError(enrolling: response)
    }
    guard detail["serial"]?.text == serial, let text = detail["public_key"]?.text,
      let key = try? RSAPublicKey(onTheWire: text)
    else { throw .configurationInvalid("it enrolled the token without sending a usable public key") }
    return key
  }

  /// Polls, and retries once with the server's time if the server rejected the time stamp.
  /// - Parameter onNewConnection: whether it opens a new TLS connection.
  func poll(serial: String, key: DeviceKey, onNewConnection: Bool = false) async throws(PollError) -> List {
    let first = try await stamp()
    do { return List(elements: try await poll(serial, key, at: first, onNewConnection)) } catch {
      guard case .clock(let drift?) = error, let second = clock.now else { throw error }
      return List(elements: try await poll(serial, key, at: second, onNewConnection), correctedClock: drift)
    }
  }

  private func poll(
    _ serial: String, _ key: DeviceKey, at milliseconds: Int64, _ onNewConnection: Bool
  ) async throws(PollError) -> [JSONValue] {
    let stamp = timeStamp(milliseconds)
    let signature: String
    do { signature = try key.signatureOnTheWire(for: "\(serial)|\(stamp)") } catch {
      throw .offline(.refused("signing failed: \(error)"))
    }
    // Only the padding of Base32 needs an escape.
    let escaped = signature.replacing("=", with: "%3D")
    let url = "\(endpoint)?serial=\(serial)&timestamp=\(stamp)&signature=\(escaped)"
    let response = try await get(url, onNewConnection: onNewConnection)
    let body = Self.parsed(response)
    let drift = clock.hear(response, body, comparedWith: milliseconds)
    guard response.status == 200, let elements = Self.elements(in: response, body) else {
      throw PollError(response, drift: drift)
    }
    return elements
  }

  /// The response's JSON. In place of challenges that cannot be parsed, a list has null: one text that a user of the
  /// portal chose must not hide the other logins.
  private static func parsed(_ response: HTTPResponse) -> JSONValue? {
    let bytes = response.body
    let whole = JSONValue(parsing: bytes)
    guard whole == nil, response.status == 200, !response.isTruncated else { return whole }
    var rest: [UInt8] = []
    var end = 0
    for element in CutJSON.elements(in: bytes, depth: listDepth, most: mostChallenges)
    where JSONValue(parsing: Array(element)) == nil {
      rest += bytes[end..<element.startIndex]
      rest += "null".utf8
      end = element.endIndex
    }
    guard end > 0 else { return nil }
    rest += bytes[end...]
    return JSONValue(parsing: rest)
  }

  /// Parses the challenges of a response. Of a list that was truncated because of its length, parses the complete
  /// elements at the start: the server lists the oldest challenges first, and they expire first.
  private static func elements(in response: HTTPResponse, _ body: JSONValue?) -> [JSONValue]? {
    guard response.isTruncated else {
      guard case .value(let value, _)? = Reply(status: response.status, body) else { return nil }
      return value.list.map { Array($0.prefix(mostChallenges)) }
    }
    let elements = CutJSON.elements(in: response.body, depth: listDepth, most: mostChallenges).compactMap {
      JSONValue(parsing: Array($0))
    }
    return elements.isEmpty ? nil : elements
  }

  /// A board that does not know the time asks for it before it signs any: every response has it, this one is an error
  /// for want of parameters.
  private func stamp() async throws(PollError) -> Int64 {
    if let now = clock.now { return now }
    let response = try await get(endpoint)
    clock.hear(response, JSONValue(parsing: response.body))
    guard let now = clock.now else { throw .offline(.unreachable("neither the board nor the server has the time")) }
    return now
  }

  /// - Returns: whether the answer was recorded, and the member `detail` of the response.
  func answer(_ body: [UInt8], to url: String) async throws(TokenServerError) -> (isRecorded: Bool, detail: JSONValue?)
  {
    let response = try await post(String(decoding: body, as: UTF8.self), to: url, deadline: .seconds(15))
    guard response.status == 200 else { throw TokenServerError(answering: response) }
    guard case .value(.bool(let isRecorded), let detail)? = Reply(response) else {
      throw TokenServerError(unexplained: response)
    }
    return (isRecorded, detail)
  }

  /// Asks whether the token is deleted, over a new TLS connection. A poll of such a token is refused as one for which
  /// there is no policy, but an answer to a challenge that does not exist is refused with "not found" for a deleted
  /// token, and otherwise not recorded. Servers do not count it in the token's failure counter.
  /// - Parameter nonce: that of no challenge.
  /// - Returns: whether the server says so; false without a response.
  func isDeleted(serial: String, key: DeviceKey, nonce: String) async -> Bool {
    do {
      let body = try PushAnswer.decline(nil).body(nonce: nonce, serial: serial, key: key)
      let response = try await post(
        String(decoding: body, as: UTF8.self), to: endpoint, deadline: .seconds(15), onNewConnection: true)
      return TokenServerError(answering: response) == .requestNotFound
    } catch { return false }
  }

  private func get(_ url: String, onNewConnection: Bool = false) async throws(PollError) -> HTTPResponse {
    var request = HTTPRequest(.get, url, headers: ["User-Agent": Self.userAgent, "Accept": "application/json"])
    if onNewConnection { request.idleLimit = .zero }
    request.maximumBodyBytes = Self.longestList
    request.takesBeginning = true
    do { return try await http.send(request) } catch { throw .offline(TokenServerError(error)) }
  }

  private func post(
    _ body: String, to url: String, deadline: Duration, onNewConnection: Bool = false
  ) async throws(TokenServerError) -> HTTPResponse {
    var request = HTTPRequest(
      .post, url, headers: ["User-Agent": Self.userAgent, "Content-Type": "application/json"], body: Array(body.utf8),
      deadline: deadline)
    if onNewConnection { request.idleLimit = .zero }
    do {
      let response = try await http.send(request)
      clock.hear(response, JSONValue(parsing: response.body))
      return response
    } catch { throw TokenServerError(error) }
  }
}
