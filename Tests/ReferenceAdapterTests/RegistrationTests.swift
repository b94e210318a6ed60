// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import MobileAuth
import ReferenceProtocol
import Secrets
import ServerBackends
import Testing

@testable import ReferenceAdapter

@Suite(.timeLimit(.minutes(5))) struct RegistrationTests {
  @Test("A device registers with the serial number of its board, or with none", arguments: [nil, "10000000abcdef01"])
  func boardSerial(serial: String?) async throws {
    let server = try FakeServer()
    let http = RecordingHTTPTransport { _ throws(HTTPTransportError) in throw .unreachable("no route") }
    let enrollment = Enrollment(
      registry: MemoryRegistry(), in: server.environment, pinPrompter: nil, boardSerial: serial,
      progress: { _ in }
    ) { _ in http }
    await #expect(throws: TokenServerError.self) {
      try await enrollment.enroll(
        uri(), name: nil, trust: ServerTrust(pins: []),
        capabilities: .init(display: .none, keypad: false, button: true, led: .mono))
    }
    let body = try #require(http.requests.first).body
    #expect(try JSON.decode(RegistrationRequest.self, from: body).boardSerial == serial)
    #expect(String(decoding: body, as: UTF8.self).contains("board_serial") == (serial != nil))
  }

  private func uri() throws -> ActivationURI {
    ActivationURI(server: FakeServer.url, code: try #require(ActivationCode("0000000000000")), pins: [])
  }

  /// Fails if what the other kind has stored is read as a device key: the vault would count as damaged.
  @Test("An activation URI with the address of a server of another kind is refused") func otherKind() async throws {
    let (registry, server) = (MemoryRegistry(), try FakeServer())
    let id = TokenServerID("token.example")
    try registry.put(
      TokenServerRecord(id: id, kind: "other", url: FakeServer.url, secrets: SecretBytes(copying: [1])))
    let enrollment = Enrollment(registry: registry, in: server.environment, pinPrompter: nil, progress: { _ in }) {
      _ in server.makeHTTPTransport()
    }
    await #expect(throws: TokenServerError.alreadyEnrolled("\(id) is known as a token server of another kind")) {
      try await enrollment.enroll(
        uri(), name: nil, trust: ServerTrust(),
        capabilities: .init(display: .none, keypad: false, button: true, led: .mono))
    }
  }

  /// Fails if the registration is replaced, by which the server knows this device before it has an account.
  @Test("A registered device's server does not give way to one of another kind, without accounts, too")
  func registrationStays() async throws {
    let (registry, server) = (MemoryRegistry(), try FakeServer())
    let registered = RegistrationResponse(clientID: FakeServer.clientID, registrationClientURI: FakeServer.url)
    let http = RecordingHTTPTransport { request throws(HTTPTransportError) in
      guard request.url.hasSuffix("/register") else { throw .unreachable("no route") }
      return HTTPResponse(status: 201, body: JSON.encode(registered))
    }
    let enrollment = Enrollment(registry: registry, in: server.environment, pinPrompter: nil, progress: { _ in }) {
      _ in http
    }
    await #expect(throws: TokenServerError.self) {
      try await enrollment.enroll(
        uri(), name: nil, trust: ServerTrust(),
        capabilities: .init(display: .none, keypad: false, button: true, led: .mono))
    }
    let record = try #require(try registry.servers().first)
    #expect(try registry.accounts().isEmpty && DeviceCredentials(record).clientID == FakeServer.clientID)
    #expect(throws: TokenServerError.alreadyEnrolled("\(record.id) is known as a token server of another kind")) {
      try registry.requireNoOtherKind(of: record.id, than: "other")
    }
  }

  /// What a server refuses; each error has the number 10001.
  enum Refusal: CaseIterable {
    case credentials, version, versionForToken
  }

  /// Fails if a server that is too old for this token, or says so, costs the registration.
  @Test(
    "Only refused client credentials make a registered device register again, not each error with the number 10001",
    arguments: Refusal.allCases)
  func registersAgain(refusal: Refusal) async throws {
    let registry = MemoryRegistry()
    let server = try FakeServer(registry: registry)
    let http = server.makeHTTPTransport()
    let id = try server.adapter(http).id
    let entry = AuditEntry(.removed, wallClockMilliseconds: 0)
    for account in try registry.accounts() { try registry.wipe(account: account.id, if: nil, entry) }
    switch refusal {
    case .credentials:
      server.on("/oauth/token") { _ in
        HTTPResponse(status: 401, body: JSON.encode(OAuthError(OAuthError.invalidClient, "unknown key")))
      }
    case .version: server.on("/configuration", problem: .configurationInvalid)
    case .versionForToken:
      server.on("/oauth/token", status: 400, #"{"error":"invalid_request","error_code":10001}"#)
    }
    let enrollment = Enrollment(registry: registry, in: server.environment, pinPrompter: nil, progress: { _ in }) {
      _ in http
    }
    // The fake server registers no devices.
    let error = await #expect(throws: TokenServerError.self) {
      try await enrollment.enroll(
        uri(), name: nil, trust: ServerTrust(),
        capabilities: .init(display: .none, keypad: false, button: true, led: .mono))
    }
    let isAgain = refusal == .credentials
    #expect(http.requests.contains { String(decoding: $0.body, as: UTF8.self).contains("client_name") } == isAgain)
    #expect(registry.audit.contains { $0.kind == .wiped } == isAgain)
    let kept = try #require(try registry.servers().first { $0.id == id })
    #expect(try DeviceCredentials(kept).clientID == (isAgain ? nil : FakeServer.clientID))
    if !isAgain { #expect(error?.number == 10001) }
  }
}
