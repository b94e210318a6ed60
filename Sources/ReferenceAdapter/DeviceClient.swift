import Courier
import Cryptography
import MobileAuth
import ReferenceProtocol

/// Speaks HTTP to one reference token server as one device: `private_key_jwt` for access tokens, DPoP with the
/// server's nonces on every call. Holds tokens and nonce in memory only.
actor DeviceClient {
  /// Whose token a call carries.
  enum Authority: Sendable {
    case device
    /// A user access token, from an activation.
    case user(String)
  }

  /// An access token as a call carries it.
  private struct UsedToken {
    let text: String
    /// `tokenCount` when it came; nil for a user's.
    let number: Int?
  }

  private static let neverContent = TokenServerFault.unreachable("the token server keeps asking for another proof")

  /// An access token is renewed this long before it ends.
  private static let renewalMargin = Duration.seconds(30)
  /// One more for a stale nonce, one more for an expired token.
  private static let tries = 3

  let issuer: String
  let clientID: String?
  private let key: P256PrivateKey
  private let courier: any Courier
  private let timekeeper: any Timekeeper
  private let metadata: ServerMetadata
  /// Nil where whoever asks decides by itself what a removal means.
  private let revocations: Revocations?
  /// Requests go over new connections.
  private var asksFreshly = false

  private var nonce: String?
  private var deviceToken: (text: String, number: Int, renewAt: Moment)?
  /// Device tokens asked for so far; tells one that was asked for during a call from those before it.
  private var tokenCount = 0
  /// The server's clock (Unix seconds), when it said so, and when the certificate it said so with expires.
  private var serverTime: (seconds: Int64, at: Moment, expiry: Int64?)?

  /// - Parameter clientID: nil before the registration.
  init(
    issuer: String, clientID: String?, key: P256PrivateKey, courier: any Courier, timekeeper: any Timekeeper,
    revocations: Revocations? = nil
  ) {
    self.revocations = revocations
    self.issuer = issuer
    self.clientID = clientID
    self.key = key
    self.courier = courier
    self.timekeeper = timekeeper
    metadata = ServerMetadata(issuer: issuer)
  }

  /// Unix seconds by the server's clock, or the board's own before the server has been heard.
  var now: Int64 {
    guard let serverTime else { return timekeeper.wallClockMilliseconds / 1000 }
    return serverTime.seconds + (timekeeper.now - serverTime.at).components.seconds
  }

  /// Unix seconds by the server's clock; nil before it has been heard, and from the expiry of its certificate on: a server
  /// that believes itself expired is wrong, or lies.
  var vouchedTime: Int64? {
    guard let expiry = serverTime?.expiry, now <= expiry else { return nil }
    return now
  }

  /// Proves the knowledge of a PIN to one path of the device API.
  func assertion(
    by key: KnowledgeKey, for profile: String, path: String, nonce: String? = nil
  ) async throws(TokenServerFault) -> String {
    try await assertion(by: key, for: profile, audience: metadata.approvalDeviceAPI + path, nonce: nonce)
  }

  /// - Parameter audience: the one URL at which it is good.
  func assertion(
    by key: KnowledgeKey, for profile: String, audience: String, nonce: String? = nil
  ) async throws(TokenServerFault) -> String {
    try await hearTime()
    let claims = KnowledgeAssertion.Claims(
      clientID: clientID ?? "", profileID: profile, audience: audience, identifier: Random.uuid(), now: now,
      nonce: nonce)
    do { return try key.assertion(claims) } catch { throw .refused("signing failed: \(error)") }
  }

  /// Makes sure that `now` is the server's time and not what a board without a clock believes.
  private func hearTime() async throws(TokenServerFault) {
    if serverTime == nil { _ = try await call(.get, "/configuration") }
  }

  /// One call of the device API.
  /// - Parameter path: below the API's base, beginning with `/`; may have a query.
  /// - Parameter takesBeginning: whether a body that is too long is cut instead of refused.
  /// - Parameter freshly: over a new TLS connection, with a new access token.
  /// - Parameter profile: which one the call is about, where the path does not say so.
  /// - Returns: a 2xx answer, or 304.
  func call(
    _ method: HTTPRequest.Method, _ path: String, body: [UInt8] = [], headers: HTTPHeaders = [:],
    as authority: Authority = .device, deadline: Duration = .seconds(15), takesBeginning: Bool = false,
    freshly: Bool = false, about profile: String? = nil
  ) async throws(TokenServerFault) -> HTTPResponse {
    if freshly { (deviceToken, asksFreshly) = (nil, true) }
    defer { if freshly { asksFreshly = false } }
    let tokensBefore = tokenCount
    for _ in 0..<Self.tries {
      var request = HTTPRequest(method, metadata.approvalDeviceAPI + path, headers: headers, body: body)
      request.deadline = deadline
      request.takesBeginning = takesBeginning
      request.wantsNewConnection = asksFreshly
      let token = try await authorise(&request, authority)
      let response: HTTPResponse
      do { response = try await courier.send(request) } catch { throw TokenServerFault(error) }
      hear(response)
      if (200..<300).contains(response.status) || response.status == 304 { return response }
      guard response.status == 401, canRetry(response, token, tokensBefore) else {
        throw judged(
          TokenServerFault(response), response, about: profile ?? Self.profile(in: path), isSecondAsk: freshly)
      }
    }
    throw Self.neverContent
  }

  /// What of a removal counts.
  private func judged(
    _ fault: TokenServerFault, _ response: HTTPResponse, about profile: String? = nil, isSecondAsk: Bool
  ) -> TokenServerFault {
    revocations?.judge(fault, response, about: profile, isSecondAsk: isSecondAsk) ?? fault
  }

  /// `/profiles/PROFILE/…`
  private static func profile(in path: String) -> String? {
    let steps = path.split(separator: "/")
    return steps.first == "profiles" && steps.count > 1 ? String(steps[1]) : nil
  }

  /// Opens the event stream.
  func stream(_ path: String, headers: HTTPHeaders) async throws(TokenServerFault) -> HTTPResponseStream {
    let tokensBefore = tokenCount
    for _ in 0..<Self.tries {
      var request = HTTPRequest(.get, metadata.approvalDeviceAPI + path, headers: headers)
      let token = try await authorise(&request, .device)
      let stream: HTTPResponseStream
      do { stream = try await courier.stream(request) } catch { throw TokenServerFault(error) }
      var response = HTTPResponse(status: stream.status, headers: stream.headers)
      response.certificateExpiry = stream.certificateExpiry
      hear(response)
      if (200..<300).contains(stream.status) { return stream }
      response.body = await Self.body(of: stream)
      guard response.status == 401, canRetry(response, token, tokensBefore) else {
        throw judged(TokenServerFault(response), response, isSecondAsk: false)
      }
    }
    throw Self.neverContent
  }

  /// `POST /oauth/register`.
  /// - Parameter code: the activation code's digits, as Bearer.
  func register(_ registration: RegistrationRequest, code: String) async throws(TokenServerFault)
    -> RegistrationResponse
  {
    let request = HTTPRequest(
      .post, metadata.registrationEndpoint,
      headers: ["Content-Type": "application/json", "Authorization": "Bearer \(code)"], body: JSON.encode(registration))
    let response: HTTPResponse
    do { response = try await courier.send(request) } catch { throw TokenServerFault(error) }
    hear(response)
    guard response.status == 201 else { throw TokenServerFault(oauth: response) }
    return try Self.decode(RegistrationResponse.self, response)
  }

  /// `POST /oauth/token`.
  func requestToken(
    grant: String, form: [(String, String)] = [], about profile: String? = nil
  ) async throws(TokenServerFault) -> AccessTokenResponse {
    let response = try await oauth(metadata.tokenEndpoint, [("grant_type", grant)] + form)
    guard response.status == 200 else {
      throw judged(TokenServerFault(oauth: response), response, about: profile, isSecondAsk: asksFreshly)
    }
    return try Self.decode(AccessTokenResponse.self, response)
  }

  /// A form to an OAuth endpoint, with client authentication and proof of possession.
  private func oauth(_ url: String, _ form: [(String, String)]) async throws(TokenServerFault) -> HTTPResponse {
    guard let clientID else { throw .notAuthenticated("the device is not registered yet") }
    var last: HTTPResponse?
    for _ in 0..<Self.tries {
      let assertion: String
      do { assertion = try ClientAssertion.make(clientID: clientID, audience: issuer, now: now, key: key) } catch {
        throw .refused("signing failed: \(error)")
      }
      let members =
        [
          ("client_id", clientID), ("client_assertion_type", Grant.clientAssertionType),
          ("client_assertion", assertion),
        ] + form
      var request = HTTPRequest(
        .post, url,
        headers: [
          "Content-Type": "application/x-www-form-urlencoded", "DPoP": try proof(.post, url, nil),
        ], body: Array(formEncoded(members).utf8))
      request.wantsNewConnection = asksFreshly
      let response: HTTPResponse
      do { response = try await courier.send(request) } catch { throw TokenServerFault(error) }
      let formerNonce = nonce
      hear(response)
      let error = try? JSON.decode(OAuthError.self, from: response.body)
      guard error?.error == OAuthError.useDPoPNonce, nonce != formerNonce else { return response }
      last = response
    }
    guard let last else { throw .notAuthenticated("no answer") }
    return last
  }

  /// `POST /oauth/revoke` (RFC 7009).
  func revoke(_ token: String) async throws(TokenServerFault) {
    let response = try await oauth(metadata.revocationEndpoint, [("token", token)])
    guard response.status == 200 else {
      throw judged(TokenServerFault(oauth: response), response, isSecondAsk: false)
    }
  }

  /// The body as the protocol's type; anything else is not the server's answer.
  static func decode<Value: Decodable>(_ type: Value.Type, _ response: HTTPResponse) throws(TokenServerFault) -> Value {
    do { return try JSON.decode(type, from: response.body) } catch {
      throw .unreachable("the token server's answer is not understood: \(error)")
    }
  }

  // MARK: Proofs

  /// Puts token and proof on the request.
  /// - Returns: the token used.
  private func authorise(
    _ request: inout HTTPRequest, _ authority: Authority
  ) async throws(TokenServerFault) -> UsedToken {
    let token: UsedToken
    switch authority {
    case .user(let text): token = UsedToken(text: text, number: nil)
    case .device: token = try await currentDeviceToken()
    }
    request.headers["Authorization"] = "DPoP \(token.text)"
    request.headers["DPoP"] = try proof(request.method, request.url, token.text)
    if !request.body.isEmpty { request.headers["Content-Type"] = "application/json" }
    return token
  }

  private func currentDeviceToken() async throws(TokenServerFault) -> UsedToken {
    if let deviceToken, timekeeper.now < deviceToken.renewAt {
      return UsedToken(text: deviceToken.text, number: deviceToken.number)
    }
    let asked = timekeeper.now
    let response: AccessTokenResponse
    do { response = try await requestToken(grant: Grant.clientCredentials) } catch {
      // It refuses the token and not what the token is for, which is tried again.
      guard case .refused(let why) = error else { throw error }
      throw .unreachable("the token server gives no access token: \(why)")
    }
    tokenCount += 1
    let lifetime = Duration.seconds(max(0, min(response.expiresIn, 86_400))) - Self.renewalMargin
    deviceToken = (response.accessToken, tokenCount, asked + lifetime)
    return UsedToken(text: response.accessToken, number: tokenCount)
  }

  private func proof(_ method: HTTPRequest.Method, _ url: String, _ token: String?) throws(TokenServerFault) -> String {
    do {
      return try DPoPProof.make(
        method: method.rawValue, url: url, nonce: nonce, accessToken: token, issuedAt: now, key: key)
    } catch { throw .refused("signing failed: \(error)") }
  }

  /// A 401 that another nonce or another token may cure (RFC 9449 §9). A token that was asked for before this call may have
  /// been dropped by another call already; one that was asked for during it and is refused too is not renewed again.
  private func canRetry(_ response: HTTPResponse, _ token: UsedToken, _ tokensBefore: Int) -> Bool {
    if response.headers["WWW-Authenticate"]?.contains(OAuthError.useDPoPNonce) == true { return true }
    guard (try? JSON.decode(Problem.self, from: response.body))?.slug == .notAuthenticated, let number = token.number,
      number <= tokensBefore
    else { return false }
    if deviceToken?.number == number { deviceToken = nil }
    return true
  }

  private func hear(_ response: HTTPResponse) {
    if let fresh = response.headers["DPoP-Nonce"] { nonce = fresh }
    if let seconds = response.headers["Date"].flatMap(unixSeconds(httpDate:)) {
      serverTime = (seconds, timekeeper.now, response.certificateExpiry)
    }
  }

  /// The beginning of an error answer's body: enough for a problem, bounded for everything else.
  private static func body(of stream: HTTPResponseStream) async -> [UInt8] {
    var body: [UInt8] = []
    do {
      for try await chunk in stream.body {
        body += chunk
        if body.count > 16_384 { break }
      }
    } catch {
      // What came before the break may still explain the status.
    }
    return body
  }
}

/// `application/x-www-form-urlencoded` (WHATWG URL §5.2), for values that need no other escapes than these.
private func formEncoded(_ members: [(String, String)]) -> String {
  members.map { name, value in "\(escaped(name))=\(escaped(value))" }.joined(separator: "&")
}

private func escaped(_ text: String) -> String {
  text.utf8.map { byte in
    let character = Character(Unicode.Scalar(byte))
    let isPlain = character.isASCII && (character.isLetter || character.isNumber || "-._".contains(character))
    return isPlain ? String(character) : "%" + [byte].uppercaseHex
  }.joined()
}
