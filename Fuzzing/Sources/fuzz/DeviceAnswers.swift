// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import MobileAuth
import OpenPGP
import ReferenceProtocol
import Secrets
import Synchronization

@testable import ControlProtocol
@testable import ReferenceAdapter
@testable import TokenDaemon

/// Responses of the token server: the input as the response to one call, processed by the adapter up to the texts for
/// the user.
func readServerAnswer(_ bytes: [UInt8]) {
  var input = Input(bytes, choices: 11)
  let choice = input.choice
  switch choice {
  case 8: return readSealedRequest(input.bytes)
  case 9: return readReceipt(input.bytes)
  case 10: return readNotice(input.bytes)
  default: break
  }
  // In the seeds, a digit means a complete response and a letter a truncated one.
  let flags = input.byte()
  let status = statuses[Int(flags & 0x0F) % statuses.count]
  var headers: HTTPHeaders = [:]
  for line in input.lines() {
    let parts = line.split(separator: ":", maxSplits: 1)
    if parts.count == 2 { headers[String(parts[0])] = String(parts[1].drop { $0 == " " }) }
  }
  var response = HTTPResponse(status: status, headers: headers, body: input.bytes)
  response.isTruncated = flags & 0x40 != 0
  wait { [response] in await ask(choice, response) }
}

private let statuses = [200, 201, 204, 304, 400, 401, 403, 404, 409, 410, 422, 429, 500, 503]
private let issuer = "https://s"
private let transaction = "00000000-0000-4000-8000-000000000001"

/// - Parameter answer: the response to all requests except for an access token, or only to that if `isForToken`.
private func http(_ answer: HTTPResponse, isForToken: Bool = false) -> RecordingHTTPTransport {
  @Sendable func respond(to request: HTTPRequest) -> HTTPResponse {
    guard request.url == issuer + "/oauth/token", !isForToken else { return answer }
    return HTTPResponse(status: 200, body: accessToken)
  }
  return RecordingHTTPTransport { request in
    let answer = respond(to: request)
    return HTTPResponseStream(
      status: answer.status, headers: answer.headers,
      body: AsyncThrowingStream { continuation in
        continuation.yield(answer.body)
        continuation.finish()
      })
  } answer: { request in
    respond(to: request)
  }
}

private let accessToken = JSON.encode(AccessTokenResponse(accessToken: "T", expiresIn: 900, scope: .device))

private let records: (TokenServerRecord, AccountRecord) = orTrap {
  let device = DeviceCredentials(deviceKey: Keys.device, clientID: "C", pins: [])
  let account = AccountCredentials(key: Keys.token, serverCertificate: Keys.server.certificate, codeDigest: [])
  let id = TokenServerID("s")
  return (
    TokenServerRecord(id: id, kind: ReferenceServerClient.kind, url: issuer, secrets: try device.encoded()),
    account.stored(
      in: AccountRecord(
        id: AccountID("ann"), server: id, profile: "PROFIL", stage: .active, secrets: SecretBytes(copying: [])))
  )
}

private let clock = ManualClock(wallClockMilliseconds: 0)

/// Shared by all inputs, because parsing its keys takes longer than the rest.
private let server: ReferenceServerClient = orTrap {
  try ReferenceServerClient(
    records.0, accounts: [records.1], registry: MemoryRegistry(), pinBinding: Keys.shared, http: CurrentAnswer(),
    in: .test(clock))
}

/// An HTTP client that returns the current input as the response.
private struct CurrentAnswer: HTTPTransport {
  static let value = Mutex(HTTPResponse(status: 200))

  private var http: RecordingHTTPTransport { fuzz.http(Self.value.withLock { $0 }) }

  func send(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponse { try await http.send(request) }
  func stream(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponseStream {
    try await http.stream(request)
  }
}

private func client(_ http: RecordingHTTPTransport) -> DeviceClient {
  DeviceClient(issuer: issuer, clientID: "C", key: Keys.device, http: http, in: .test(clock))
}

private func ask(_ choice: Int, _ answer: HTTPResponse) async {
  CurrentAnswer.value.withLock { $0 = answer }
  switch choice {
  case 0:
    _ = try? await server.validate()
    server.hasAuthenticators.withLock { $0 = true }
    _ = try? await server.authenticators(of: AccountID("ann"))
  case 1: await showPending()
  case 2:
    guard let id = TransactionID(transaction) else { return }
    _ = try? await server.status(of: id, account: AccountID("ann"))
  case 3:
    let client = client(http(answer, isForToken: true))
    _ = try? await client.requestToken(grant: Grant.clientCredentials)
    _ = try? await client.call(.get, "/configuration")
    _ = await client.now
  case 4:
    let capabilities = ApprovalCapabilities(display: .none, keypad: true, button: true, led: .rgb)
    let registration = RegistrationRequest(
      clientName: "n", softwareID: "s", softwareVersion: "1", key: JWK(Keys.device.publicKey),
      capabilities: capabilities)
    _ = try? await client(http(answer)).register(registration, code: "1")
  case 5: await read(EventPage.self, answer)
  case 6: await read(KeyExchangeResponse.self, answer)
  default: await read(PINChange.self, answer)
  }
}

private func read<Value: Decodable>(_ type: Value.Type, _ answer: HTTPResponse) async {
  guard let response = try? await client(http(answer)).call(.get, "/x") else { return }
  _ = try? DeviceClient.decode(type, response)
}

/// Processes the pending list up to the printed line.
private func showPending() async {
  guard let pending = try? await server.pendingRequests() else { return }
  for request in pending.sorted(by: PendingMobileAuthRequest.newestFirst) {
    _ = JSON.encode(PendingSummary(request, now: clock.now))
    _ = try? await server.open(request)
  }
}

/// A request that the token server's key has signed and encrypted, with arbitrary content, once as fetched and once
/// from the pending list.
private func readSealedRequest(_ plaintext: [UInt8]) {
  guard let sealed = try? Keys.server.seal(plaintext, to: Keys.token.certificate),
    let id = TransactionID(transaction)
  else { return }
  let body = JSON.encode(SealedRequest(message: sealed.base64, expiresInMs: 60_000))
  let pending = PendingMobileAuthRequest(
    transaction: id, server: records.0.id, account: records.1.id, sentAtMilliseconds: 1, timeToLive: .seconds(60),
    message: nil, deadline: clock.now + .seconds(60))
  let entry = PendingEntry(
    transactionID: transaction, profileID: "PROFIL", message: nil, typeHint: nil, sentAtMs: 1, timeToLiveMs: 60_000,
    expiresInMs: 60_000, sealedMessage: sealed.base64)
  let list = JSON.encode(PendingList(serverTimeMs: 1, requests: [entry]))
  wait {
    CurrentAnswer.value.withLock { $0 = HTTPResponse(status: 200, body: list) }
    _ = try? await server.pendingRequests()
    CurrentAnswer.value.withLock { $0 = HTTPResponse(status: 200, body: body) }
    let listed = try? await server.open(pending)
    let fetched = try? await server.open(pending)
    require(listed == fetched, "a listed message is treated otherwise than a fetched one")
  }
}

/// Reads a receipt with arbitrary content and a valid signature of the token server.
private func readReceipt(_ plaintext: [UInt8]) {
  guard let sealed = try? Keys.server.seal(plaintext, to: Keys.token.certificate),
    let id = TransactionID(transaction)
  else { return }
  let status = RequestStatus(state: .authenticated, receipt: "r", idempotencyKey: "k", sealedReceipt: sealed.base64)
  CurrentAnswer.value.withLock { $0 = HTTPResponse(status: 200, body: JSON.encode(status)) }
  wait { _ = try? await server.status(of: id, account: AccountID("ann")) }
}

/// Reads a revocation notice with arbitrary content and a valid signature of the token server.
private func readNotice(_ plaintext: [UInt8]) {
  guard let sealed = try? Keys.server.seal(plaintext, to: Keys.token.certificate) else { return }
  let body = JSON.encode(["revocations": [sealed.base64, "", sealed.base64]])
  for subject in server.provenRevocations(in: HTTPResponse(status: 401, body: body)) {
    let subjects: [Revocations.Subject] = [.device, .profile("PROFIL"), .keys("PROFIL")]
    require(subjects.contains(subject), "\(subject) is of an account that is here")
  }
}
