// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import CurlHTTP
import HTTP
import MobileAuth
import PrivacyIDEAAdapter
import Testing

extension InteropPrivacyIDEA {
  /// The servers have one error for polls of a deleted token and for a policy that is disabled.
  @Suite struct RefusedPolls {
    @Test(
      "A token stays while the policy is disabled, and goes when it is deleted",
      arguments: [PushServer.Product.privacyIDEA, .eduMFA])
    func disabledAndDeleted(product: PushServer.Product) async throws {
      let server = try product == .privacyIDEA ? PushServer.shared.get() : PushServer(product)
      let (registry, events) = (MemoryRegistry(), RecordedEvents())
      let environment = TokenEnvironment.test(SystemClock(), recordingIn: events)
      let trust = ServerTrust(authorityFile: server.authority)
      var settings = PushEnrollment.Settings()
      settings.keyBits = 2048
      let enrollment = PushEnrollment(
        registry: registry, in: environment, settings: settings, pinPrompter: nil, progress: { _ in },
        makeHTTPTransport: { CurlHTTPTransport(trust: $0) })
      let (serial, url) = try server.makeToken()
      _ = try await enrollment.enroll(url, name: "desk", trust: trust)
      var pace = PollingPace()
      pace.untilQuestion = .zero
      func makeClient() throws -> PrivacyIDEAServerClient {
        try PrivacyIDEAServerClient(
          try #require(try registry.servers().first), accounts: registry.accounts(), pinVerifier: nil,
          http: CurlHTTPTransport(trust: trust), in: environment, pace: pace)
      }
      /// The fifth refusal is followed by the question whether the token is deleted.
      func poll(_ client: PrivacyIDEAServerClient) async throws {
        for _ in 1...5 {
          _ = try await client.pendingRequests()
          try await Task.sleep(for: .milliseconds(1100))
        }
      }

      try server.setPolicy("push", isEnabled: false)
      defer { try? server.setPolicy("push", isEnabled: true) }
      let refused = try makeClient()
      try await poll(refused)
      #expect(try await refused.validate() == Validation())
      #expect(events.troubles.count == 1 && events.troubles.first?.contains("push_registration_url") == true)

      // A new client, because the former polls rarely now.
      try server.setPolicy("push", isEnabled: true)
      let accepted = try makeClient()
      _ = try await accepted.pendingRequests()
      #expect(events.troubles.count == 1)
      try server.deleteToken(serial)
      try await Task.sleep(for: .milliseconds(1100))
      try await poll(accepted)
      #expect(try await accepted.validate().disenrolledAccounts.map(\.text) == ["desk"])
    }
  }
}
