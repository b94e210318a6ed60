// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import MobileAuth
import ReferenceProtocol
import Secrets
import ServerBackends
import Testing

@testable import ReferenceAdapter

/// What ends the registration of a fingerprint.
extension FingerprintTests {
  /// Fails if one token is encrypted with two PINs, which tells both: docs/pin.md.
  @Test("A PIN change ends the registration here and at the server") func pinChange() async throws {
    let adapter = try adapter()
    try await register(adapter)
    server.serveChange(of: SecretBytes(copying: Array(64..<96)))
    server.on("/profiles/PROFIL/pin-changes/\(FakeServer.changeID)/commit", status: 204, "")
    server.on("\(FakeServer.authenticators)/finger/deregistration", status: 204, "")
    let ticket = try await adapter.beginPINChange(account, typing: Self.pin("13579"), session: nil)
    _ = try await adapter.finishPINChange(ticket, choosing: Self.pin("24680"), parameters: Self.cheap)
    #expect(try stored().isEmpty)
    #expect(http.requests.contains { $0.url.hasSuffix("/finger/deregistration") })
    #expect(audit.last?.kind == .authenticatorRevoked && audit.last?.detail == "finger: the PIN was changed")
    server.list(("finger", .biometric, false))
    #expect(try await !isUsable(adapter))
  }

  @Test("The right PIN before a PIN change makes it usable after power-on, also if no other PIN is chosen")
  func beginningOfPINChange() async throws {
    try await register(adapter())
    server.serveChange(of: SecretBytes(copying: Array(64..<96)))
    let restarted = try adapter(UnlockedTokens())
    #expect(try await !isUsable(restarted))
    _ = try await restarted.beginPINChange(account, typing: Self.pin("13579"), session: session)
    #expect(try await isUsable(restarted))
  }

  @Test(
    "After too many wrong fingers, the registration ends here at once, and at the server", arguments: [true, false])
  func tooManyWrongFingers(isReachable: Bool) async throws {
    let adapter = try adapter()
    try await register(adapter)
    try adapter.prefer("finger", of: account)
    server.on("\(FakeServer.authenticators)/finger/deregistration", status: isReachable ? 204 : 404, "")
    server.on("/oauth/revoke", status: 200, "")
    adapter.revoke("finger", of: account, because: "3 fingers did not match")
    #expect(try stored().isEmpty && !adapter.hasPreference(account))
    #expect(audit.last?.detail == "finger: 3 fingers did not match")
    #expect(try await !isUsable(adapter))
    try await eventually("the deregistration") {
      http.requests.contains { $0.url.hasSuffix("/finger/deregistration") }
    }
    let login = try #require(http.requests.last { $0.url.hasSuffix("/oauth/token") && $0.isBiometric })
    #expect(!login.body.isEmpty && http.requests.contains { $0.url.hasSuffix("/finger/deregistration") })
  }

  @Test("A wrong proof ends the registration: the server says so") func revokedByServer() async throws {
    let adapter = try adapter()
    try await register(adapter)
    var error = OAuthError("invalid_grant", "The authenticator failed.", code: 9030)
    error.authenticatorRevoked = true
    let body = JSON.encode(error)
    server.on("/oauth/token") { request in
      request.isBiometric
        ? HTTPResponse(status: 400, body: body)
        : HTTPResponse(
          status: 200, body: JSON.encode(AccessTokenResponse(accessToken: "T", expiresIn: 900, scope: .device)))
    }
    await #expect(throws: TokenServerError.self) {
      _ = try await adapter.logIn(
        with: adapter.use("finger", of: account, for: .authenticate), data: AuthenticatorData(SecretBytes(copying: [])))
    }
    #expect(try stored().isEmpty)
    #expect(try await !isUsable(adapter))
  }
}
