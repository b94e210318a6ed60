// SPDX-License-Identifier: Apache-2.0
import OpenPGP
import ReferenceProtocol
import Secrets
import ServerTestSupport
import Testing

/// What a session that another authenticator than the PIN has begun may change.
@Suite("Sessions of authenticators", .timeLimit(.minutes(5)), .mayBlock) struct AuthenticatorSessionTests {
  private let fixture: AuthenticatorFixture
  private let device: DeviceClient

  init() throws {
    fixture = try AuthenticatorFixture()
    device = fixture.device
  }

  /// A token of an earlier version then ends its session, and asks for the PIN when the command is repeated.
  private func expectRefusal(_ reply: Curl.Reply) {
    #expect(reply.status == 401 && reply.slug == .notAuthenticated, "\(reply.text)")
    #expect(reply.headers["www-authenticate"]?.contains("insufficient_scope") == true)
  }

  private func deregister(_ id: String, _ method: String = "POST") throws -> Curl.Reply {
    try device.call(
      method, device.authenticatorPath(id) + (method == "POST" ? "/deregistration" : ""), token: device.userToken)
  }

  /// Fails if who has the weakest authenticator replaces the strongest.
  @Test("A session of a badge neither deregisters a finger nor registers another one; one of the PIN does")
  func weakerSession() throws {
    let badge = try fixture.registerBadge()
    _ = try device.registerAuthenticator("finger")
    try fixture.scripts.answer(status: 2000)
    try device.logIn(with: "badge", badge, data: AuthenticatorFixture.badge).expect(200)
    expectRefusal(try deregister("finger"))
    expectRefusal(try deregister("finger", "DELETE"))
    #expect(try fixture.entry("finger")?.registered == true)

    try device.logInWithPIN().expect(200)
    try deregister("finger").expect(204)
    try device.logIn(with: "badge", badge, data: AuthenticatorFixture.badge).expect(200)
    let ephemeral = try OpenPGPKey.generate(userID: "ephemeral")
    expectRefusal(
      try device.beginRegistration("finger", device.registrationBody("finger", ephemeral: ephemeral)))
    #expect(try fixture.entry("finger")?.registered == false)
    // It was no attempt at the PIN.
    #expect(try device.failureCounts()?.previousFailureCount == 0)
    _ = try device.registerAuthenticator("finger")
  }

  @Test("A session of a finger neither deregisters a badge nor registers another one") func finger() throws {
    let finger = try device.registerAuthenticator("finger")
    try device.logIn(with: "finger", finger).expect(200)
    expectRefusal(try fixture.beginBadge())
    #expect(try fixture.scripts.calls().isEmpty)
    _ = try fixture.registerBadge()
    try device.logIn(with: "finger", finger).expect(200)
    expectRefusal(try deregister("badge"))
    #expect(try fixture.entry("badge")?.registered == true)
  }

  /// A token that ends the registration of a finger has no other proof of the user.
  @Test("A session of an authenticator deregisters it") func ownSession() throws {
    let finger = try device.registerAuthenticator("finger")
    let badge = try fixture.registerBadge()
    try device.logIn(with: "finger", finger).expect(200)
    for _ in 1...2 { try deregister("finger").expect(204) }
    try fixture.scripts.answer(status: 2000)
    try device.logIn(with: "badge", badge, data: AuthenticatorFixture.badge).expect(200)
    try deregister("badge", "DELETE").expect(204)
    #expect(try fixture.count("authenticator") == 0)
  }
}
