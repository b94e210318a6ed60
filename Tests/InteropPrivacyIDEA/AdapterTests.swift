// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import CurlHTTP
import Foundation
import HTTP
import MobileAuth
import PrivacyIDEAAdapter
import ProgramHarness
import Secrets
import Testing

/// Tests against privacyIDEA as installed from PyPI. They run one after the other, because they set policies on one
/// server.
@Suite(.serialized, .timeLimit(.minutes(10))) struct InteropPrivacyIDEA {}

extension InteropPrivacyIDEA {
  /// The domain and the adapter, with a scripted panel.
  @Suite final class Adapter {
    private let server: PushServer
    private let registry = MemoryRegistry()
    private let environment = TokenEnvironment.test(SystemClock())
    private let panel = ScriptedPanel()

    init() throws { server = try PushServer.shared.get() }

    private func http() -> CurlHTTPTransport { CurlHTTPTransport(trust: ServerTrust(authorityFile: server.authority)) }

    private func enroll(_ url: String) async throws -> AccountRecord {
      var settings = PushEnrollment.Settings()
      settings.keyBits = 2048
      let enrollment = PushEnrollment(
        registry: registry, in: environment, settings: settings, pinPrompter: nil, progress: { _ in },
        makeHTTPTransport: { CurlHTTPTransport(trust: $0) })
      return try await enrollment.enroll(url, name: "desk", trust: ServerTrust(authorityFile: server.authority))
    }

    /// Runs listener and handler, as the service does, while `body` runs.
    private func serve(_ body: (PrivacyIDEAServerClient) async throws -> Void) async throws {
      var pace = PollingPace()
      pace.fast = .milliseconds(300)
      pace.untilLastPoll = .seconds(2)
      let record = try #require(try registry.servers().first)
      let token = try PrivacyIDEAServerClient(
        record, accounts: registry.accounts(), pinVerifier: nil, http: http(), in: environment,
        pace: pace)
      let inbox = Inbox(in: environment)
      let handler = Handler(
        servers: [token], inbox: inbox, panelTasks: PanelTaskQueue(changes: inbox.changes), panel: panel,
        stateStore: registry, mustEnroll: false, in: environment)
      let listener = RequestListener(
        to: token, inbox: inbox, stateStore: registry, in: environment)
      let running = Task { try await handler.run() }
      let listening = Task { try await listener.run() }
      defer {
        running.cancel()
        listening.cancel()
      }
      await panel.until(showing: .idle(pending: 0))
      try await body(token)
    }

    /// The options of the only pending request.
    private func choices(of token: PrivacyIDEAServerClient) async throws -> [String] {
      try #require(try await token.pendingRequests().first?.summary.choices).options
    }

    private func typed(_ digits: String) -> PanelEvent {
      .typed(digits)
    }

    @Test("Enroll, approve, deny, choose, expire, enroll again, delete")
    func enrollApproveDenyChooseExpireEnrollAgainDelete() async throws {
      let (serial, url) = try server.makeToken()
      #expect(try await enroll(url).profile == serial)

      try await serve { token in
        // Approve.
        var login = try server.trigger(serial)
        #expect(try server.challengeStatus(login.transaction) == "pending")
        await panel.until(challenges: 1)
        panel.perform(.gesture(Gesture(.hold, held: .seconds(1))))
        await panel.until(showing: .idle(pending: 0))
        #expect(try server.challengeStatus(login.transaction) == "accept")
        #expect(try server.finalize(serial, login.transaction) == "ACCEPT")
        #expect(panel.shown.contains(.confirmed))

        // Deny, with each reason.
        for (number, gesture, status) in [
          (2, Gesture.Kind.doublePress, "cancelled"), (3, .veryLongHold, "declined"),
        ] {
          login = try server.trigger(serial)
          await panel.until(challenges: number)
          panel.perform(.gesture(Gesture(gesture, held: .seconds(7))))
          await panel.until(showing: .idle(pending: 0))
          #expect(try server.challengeStatus(login.transaction) == status)
          #expect(try server.finalize(serial, login.transaction) == "REJECT")
        }

        // A number that the portal shows: wrong, then right.
        try server.policy(
          "presence", scope: "authentication",
          ["push_require_presence": "1", "push_presence_options": "NUMERIC", "push_presence_num_options": "3"])
        login = try server.trigger(serial)
        let right = try #require(login.presence)
        await panel.until(challenges: 4)
        guard let count = panel.prompts.last?.digitCount else {
          Issue.record("no digits wanted")
          return
        }
        #expect(count == 2 && right.count == 2)
        let wrong = try #require(try await choices(of: token).first { $0 != right })
        panel.perform(typed(wrong))
        await panel.until(challenges: 5)
        #expect(try server.challengeStatus(login.transaction) == "pending")
        panel.perform(typed(right))
        await panel.until(showing: .idle(pending: 0))
        #expect(try server.challengeStatus(login.transaction) == "accept")
        // Too many wrong choices: the token denies by itself.
        login = try server.trigger(serial)
        for number in 6...7 {
          await panel.until(challenges: number)
          let wrong = try #require(try await choices(of: token).first { $0 != login.presence })
          panel.perform(typed(wrong))
        }
        await panel.until(showing: .idle(pending: 0))
        #expect(try server.challengeStatus(login.transaction) == "declined")
        try server.removePolicy("presence")

        // A code from the token to the portal.
        try server.policy("code", scope: "authentication", ["push_code_to_phone": "1"])
        login = try server.trigger(serial)
        await panel.until(challenges: 8)
        panel.perform(.gesture(Gesture(.hold, held: .seconds(1))))
        await panel.until(showing: .idle(pending: 0))
        let digits = panel.shown.compactMap { if case .code(let digits) = $0 { digits } else { nil } }.last
        let code = try #require(digits).map(String.init).joined()
        #expect(code.count == 2)
        #expect(try server.challengeStatus(login.transaction) == "pending")
        #expect(try server.finalize(serial, login.transaction, code: code) == "ACCEPT")
        try server.removePolicy("code")

        // No answer.
        try server.set("PushChallengeValidityTime", to: "3")
        login = try server.trigger(serial)
        await panel.until(challenges: 9)
        await panel.until(showing: .idle(pending: 0))
        #expect(try server.challengeStatus(login.transaction) == "pending")
        #expect(try server.finalize(serial, login.transaction) != "ACCEPT")
        try server.set("PushChallengeValidityTime", to: "120")
      }

      // Enrolled again: the old keys are invalid, the new ones work.
      _ = try await enroll(server.makeToken(again: serial).url)
      try await serve { token in
        let login = try server.trigger(serial)
        await panel.until(challenges: 10)
        panel.perform(.gesture(Gesture(.hold, held: .seconds(1))))
        await panel.until(showing: .idle(pending: 0))
        #expect(try server.challengeStatus(login.transaction) == "accept")

        // Deleted: the token detects it by itself.
        try server.deleteToken(serial)
        while try await token.validate().disenrolledAccounts.isEmpty {
          try await Task.sleep(for: .milliseconds(200))
        }
        #expect(try await token.validate().disenrolledAccounts.map(\.text) == ["desk"])
      }
    }
  }
}
