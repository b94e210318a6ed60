// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
import HTTP
import MobileAuth
import ReferenceProtocol
import ServerBackends

/// The HTTP client of one device at one reference token server: `private_key_jwt` to get access tokens, DPoP with the
/// server's nonces on every call. Access token and nonce are kept in memory only.
actor DeviceClient {
  /// The access token used by a call.
  private struct UsedToken {
    let text: String
    /// The value of `tokenCount` when the token was issued; nil for a user access token.
    let number: Int?
  }

  /// What a proof is for.
  private struct ProofUse: Equatable {
    let method: HTTPRequest.Method
    let url: String
    let token: String
    let nonce: String?
  }

  /// How long before its expiry an access token is renewed.
  private static let renewalMargin = Duration.seconds(30)
  /// How long before its expiry an access token is renewed while nothing waits for it: two heartbeats earlier.
  private static let earlyRenewalMargin = renewalMargin + EventFeed.silence
  /// The number of attempts: two retries, for a stale nonce and an expired token.
  static let tries = 3

  let issuer: String
  let clientID: String?
  let key: P256PrivateKey
  private let proofs: DPoPProof.Maker
  let http: any HTTPTransport
  let environment: TokenEnvironment
  let metadata: ServerMetadata
  /// Nil if the caller decides what an unsigned removal means.
  private let revocations: Revocations?
  /// Whether requests use new connections.
  private(set) var isReconnecting = false
  /// When the event stream was opened; nil while there is none.
  private var streamStart: MonotonicInstant?
  /// Whether the server refused this device's client credentials, twice in a row, when it was last asked for a token.
  var areCredentialsRefused = false

  private(set) var nonce: String?
  /// A proof that the next call with exactly these values uses.
  private var prepared: (use: ProofUse, proof: String)?
  private var deviceToken: (text: String, number: Int, expiry: MonotonicInstant)?
  /// The number of device tokens requested so far. Distinguishes a token requested during a call from earlier ones.
  private var tokenCount = 0
  /// The server's time (Unix seconds), when it was received, and the expiry of the certificate of that connection.
  private var serverTime: (seconds: Int64, at: MonotonicInstant, expiry: Int64?)?

  /// - Parameter clientID: nil before the registration.
  init(
    issuer: String, clientID: String?, key: P256PrivateKey, http: any HTTPTransport, in environment: TokenEnvironment,
    revocations: Revocations? = nil
  ) {
    self.revocations = revocations
    self.issuer = issuer
    self.clientID = clientID
    self.key = key
    proofs = DPoPProof.Maker(key)
    self.http = http
    self.environment = environment
    metadata = ServerMetadata(issuer: issuer)
  }

  /// Unix seconds by the server's clock, or by the board's clock before the first response.
  var now: Int64 {
    guard let serverTime else { return environment.wallClockMilliseconds / 1000 }
    return serverTime.seconds + (environment.now - serverTime.at).components.seconds
  }

  /// Unix seconds by the server's clock; nil before the first response and after the expiry of the server's
  /// certificate, because such a clock is wrong or malicious.
  var vouchedTime: Int64? {
    guard let expiry = serverTime?.expiry, now <= expiry else { return nil }
    return now
  }

  /// Ensures that `now` is the server's time, not the unset clock of a board.
  func hearTime() async throws(TokenServerError) {
    if serverTime == nil { _ = try await call(.get, "/configuration") }
  }

  /// Sends one request of the device API. Retries with a new nonce or access token if the server requires it.
  /// - Parameters:
  ///   - path: relative to the API's base, starts with `/`, may have a query.
  ///   - takesBeginning: whether a response body that is too long is truncated instead of refused.
  ///   - reconnecting: whether to use a new TLS connection and a new access token.
  ///   - profile: the profile concerned, if the path does not contain it.
  /// - Returns: a response with status 2xx or 304.
  func call(
    _ method: HTTPRequest.Method, _ path: String, body: [UInt8] = [], headers: HTTPHeaders = [:],
    as authority: Authority = .device, deadline: Duration = .seconds(15), takesBeginning: Bool = false,
    reconnecting: Bool = false, about profile: String? = nil
  ) async throws(TokenServerError) -> HTTPResponse {
    if reconnecting { (deviceToken, isReconnecting) = (nil, true) }
    defer { if reconnecting { isReconnecting = false } }
    let tokensBefore = tokenCount
    for _ in 0..<Self.tries {
      var request = HTTPRequest(method, metadata.approvalDeviceAPI + path, headers: headers, body: body)
      request.deadline = deadline
      request.takesBeginning = takesBeginning
      request.idleLimit = idleLimit
      let token = try await authorize(&request, authority)
      let response: HTTPResponse
      do { response = try await http.send(request) } catch { throw TokenServerError(error) }
      hear(response)
      if (200..<300).contains(response.status) || response.status == 304 { return response }
      guard response.status == 401, canRetry(response, token, tokensBefore) else {
        throw checked(
          TokenServerError(response), response, about: profile ?? Self.profile(in: path), isSecondAsk: reconnecting)
      }
    }
    throw Self.neverContent
  }

  /// Replaces an unsigned removal by `.unconfirmedRemoval` until it is confirmed.
  func checked(
    _ fault: TokenServerError, _ response: HTTPResponse, about profile: String? = nil, isSecondAsk: Bool
  ) -> TokenServerError {
    revocations?.check(fault, response, about: profile, isSecondAsk: isSecondAsk) ?? fault
  }

  /// The server keeps an idle connection for the next request. The heartbeats of an event stream prove that the line
  /// was not interrupted since it was opened; whether something on the way has forgotten an idle connection, TCP's
  /// keepalive finds out.
  var idleLimit: Duration {
    if isReconnecting { return .zero }
    return max(HTTPRequest.defaultIdleLimit, streamStart.map { environment.now - $0 } ?? .zero)
  }

  /// Opens the event stream. `streamEnded` must be called at its end.
  func stream(_ path: String, headers: HTTPHeaders) async throws(TokenServerError) -> HTTPResponseStream {
    let tokensBefore = tokenCount
    for _ in 0..<Self.tries {
      var request = HTTPRequest(.get, metadata.approvalDeviceAPI + path, headers: headers)
      let token = try await authorize(&request, .device)
      let stream: HTTPResponseStream
      do { stream = try await http.stream(request) } catch { throw TokenServerError(error) }
      var response = HTTPResponse(status: stream.status, headers: stream.headers)
      response.certificateExpiry = stream.certificateExpiry
      hear(response)
      if (200..<300).contains(stream.status) {
        streamStart = environment.now
        return stream
      }
      response.body = await body(of: stream)
      guard response.status == 401, canRetry(response, token, tokensBefore) else {
        throw checked(TokenServerError(response), response, isSecondAsk: false)
      }
    }
    throw Self.neverContent
  }

  func streamEnded() { streamStart = nil }

  /// `POST /oauth/register`.
  /// - Parameter code: the digits of the activation code, sent as Bearer token.
  func register(_ registration: RegistrationRequest, code: String) async throws(TokenServerError)
    -> RegistrationResponse
  {
    let request = HTTPRequest(
      .post, metadata.registrationEndpoint,
      headers: [
        "Content-Type": "application/json", "Authorization": "Bearer \(code)",
        ProtocolVersions.headerName: ProtocolVersions.supported.text,
      ], body: JSON.encode(registration))
    let response: HTTPResponse
    do { response = try await http.send(request) } catch { throw TokenServerError(error) }
    hear(response)
    guard response.status == 201 else { throw TokenServerError(oauth: response) }
    let registered = try Self.decode(RegistrationResponse.self, response)
    // It is stored, and part of every proof.
    guard (1...128).contains(registered.clientID.utf8.count), registered.clientID.isSafeToShow else {
      throw .unreachable("the token server's \"client_id\" is not 1 to 128 printable bytes")
    }
    return registered
  }

  // MARK: Proofs

  /// Adds access token and proof to the request.
  /// - Returns: the token used.
  private func authorize(
    _ request: inout HTTPRequest, _ authority: Authority
  ) async throws(TokenServerError) -> UsedToken {
    let token: UsedToken
    switch authority {
    case .user(let text): token = UsedToken(text: text, number: nil)
    case .device: token = try await currentDeviceToken()
    }
    request.headers[ProtocolVersions.headerName] = ProtocolVersions.supported.text
    request.headers["Authorization"] = "DPoP \(token.text)"
    let use = ProofUse(method: request.method, url: request.url, token: token.text, nonce: nonce)
    request.headers["DPoP"] =
      if let prepared, prepared.use == use {
        prepared.proof
      } else {
        try proof(request.method, request.url, token.text, nonce: nonce)
      }
    prepared = nil
    if !request.body.isEmpty { request.headers["Content-Type"] = "application/json" }
    return token
  }

  /// Makes the proof of the next call in advance, if its access token is known. A call with other values makes its own.
  func prepare(_ method: HTTPRequest.Method, _ path: String) {
    guard let token = usableDeviceToken else { return }
    let use = ProofUse(method: method, url: metadata.approvalDeviceAPI + path, token: token.text, nonce: nonce)
    prepared = (try? proof(use.method, use.url, use.token, nonce: use.nonce)).map { (use, $0) }
  }

  /// Nil if there is none, or if it expires soon.
  private var usableDeviceToken: UsedToken? {
    guard let deviceToken, environment.now + Self.renewalMargin < deviceToken.expiry else { return nil }
    return UsedToken(text: deviceToken.text, number: deviceToken.number)
  }

  private func currentDeviceToken() async throws(TokenServerError) -> UsedToken {
    if let usableDeviceToken { return usableDeviceToken }
    return try await newDeviceToken()
  }

  /// Renews the access token if it expires soon. Errors are reported by the next call.
  /// - Returns: whether the server was asked for a token.
  @discardableResult func renewExpiringToken() async -> Bool {
    guard let deviceToken, deviceToken.expiry <= environment.now + Self.earlyRenewalMargin else { return false }
    _ = try? await newDeviceToken()
    return true
  }

  private func newDeviceToken() async throws(TokenServerError) -> UsedToken {
    let asked = environment.now
    let response: AccessTokenResponse
    do { response = try await requestToken(grant: Grant.clientCredentials) } catch {
      // The server refused the access token, not the operation: retry.
      guard case .refused(let why) = error else { throw error }
      throw .unreachable("the token server gives no access token: \(why)")
    }
    tokenCount += 1
    let lifetime = Duration.seconds(max(0, min(response.expiresIn, 86_400)))
    deviceToken = (response.accessToken, tokenCount, asked + lifetime)
    return UsedToken(text: response.accessToken, number: tokenCount)
  }

  /// - Parameter nonce: of the server that receives the proof.
  func proof(
    _ method: HTTPRequest.Method, _ url: String, _ token: String?, nonce: String?
  ) throws(TokenServerError) -> String {
    do {
      return try proofs.make(method: method.rawValue, url: url, nonce: nonce, accessToken: token, issuedAt: now)
    } catch { throw .refused("signing failed: \(error)") }
  }

  /// Whether a 401 response can be resolved by a new nonce or token (RFC 9449 §9). A token requested before this call
  /// is renewed, unless another call has done so already; a token requested during this call is not renewed again.
  private func canRetry(_ response: HTTPResponse, _ token: UsedToken, _ tokensBefore: Int) -> Bool {
    if response.headers["WWW-Authenticate"]?.contains(OAuthError.useDPoPNonce) == true { return true }
    guard (try? JSON.decode(Problem.self, from: response.body))?.slug == .notAuthenticated, let number = token.number,
      number <= tokensBefore
    else { return false }
    if deviceToken?.number == number { deviceToken = nil }
    return true
  }

  /// Uses the server's current nonce. One that is empty or too long is ignored.
  func use(nonce: String) {
    if (1...Self.longestNonce).contains(nonce.utf8.count) { self.nonce = nonce }
  }

  func hear(_ response: HTTPResponse) {
    if let fresh = response.headers["DPoP-Nonce"] { use(nonce: fresh) }
    if let seconds = response.headers["Date"].flatMap(unixSeconds(httpDate:)) {
      serverTime = (seconds, environment.now, response.certificateExpiry)
    }
  }
}
