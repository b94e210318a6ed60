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
  /// The domain and the adapter, with a scripted panel. Each test has a panel and a token of its own.
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
      pace.untilQuestion = .seconds(2)
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

    /// Enrolls a new token.
    /// - Returns: its serial number at the server.
    private func enrolled() async throws -> String {
      let (serial, url) = try server.makeToken()
      #expect(try await enroll(url).profile == serial)
      return serial
    }

    /// Sets a policy of the server while `body` runs.
    private func withPolicy(
      _ name: String, _ actions: [String: String], _ body: () async throws -> Void
    ) async throws {
      try server.policy(name, scope: "authentication", actions)
      do { try await body() } catch {
        try? server.removePolicy(name)
        throw error
      }
      try server.removePolicy(name)
    }

    private func withNumbers(_ body: () async throws -> Void) async throws {
      try await withPolicy(
        "presence",
        ["push_require_presence": "1", "push_presence_options": "NUMERIC", "push_presence_num_options": "3"], body)
    }

    /// Performs a gesture at the challenge with this number, and waits until the panel is idle.
    private func perform(_ gesture: Gesture.Kind, atChallenge number: Int = 1) async {
      await panel.until(challenges: number)
      panel.perform(.gesture(Gesture(gesture, held: .seconds(gesture == .veryLongHold ? 7 : 1))))
      await panel.until(showing: .idle(pending: 0))
    }

    @Test("A hold approves") func holdApproves() async throws {
      let serial = try await enrolled()
      try await serve { _ in
        let login = try server.trigger(serial)
        #expect(try server.challengeStatus(login.transaction) == "pending")
        await perform(.hold)
        #expect(try server.challengeStatus(login.transaction) == "accept")
        #expect(try server.finalize(serial, login.transaction) == "ACCEPT")
        #expect(panel.shown.contains(.confirmed))
      }
    }

    @Test("A denial has its reason") func denialHasReason() async throws {
      let serial = try await enrolled()
      try await serve { _ in
        for (number, gesture, status) in [
          (1, Gesture.Kind.doublePress, "cancelled"), (2, .veryLongHold, "declined"),
        ] {
          let login = try server.trigger(serial)
          await perform(gesture, atChallenge: number)
          #expect(try server.challengeStatus(login.transaction) == status)
          #expect(try server.finalize(serial, login.transaction) == "REJECT")
        }
      }
    }

    @Test("Of a number that the portal shows, a wrong one is not an answer and the right one approves")
    func numberOfPortal() async throws {
      let serial = try await enrolled()
      try await withNumbers {
        try await serve { token in
          let login = try server.trigger(serial)
          let right = try #require(login.presence)
          await panel.until(challenges: 1)
          #expect(try #require(panel.prompts.last?.digitCount) == 2 && right.count == 2)
          let wrong = try #require(try await choices(of: token).first { $0 != right })
          panel.perform(typed(wrong))
          await panel.until(challenges: 2)
          #expect(try server.challengeStatus(login.transaction) == "pending")
          panel.perform(typed(right))
          await panel.until(showing: .idle(pending: 0))
          #expect(try server.challengeStatus(login.transaction) == "accept")
        }
      }
    }

    @Test("After too many wrong numbers, the token denies by itself") func tooManyWrongNumbers() async throws {
      let serial = try await enrolled()
      try await withNumbers {
        try await serve { token in
          let login = try server.trigger(serial)
          for number in 1...2 {
            await panel.until(challenges: number)
            let wrong = try #require(try await choices(of: token).first { $0 != login.presence })
            panel.perform(typed(wrong))
          }
          await panel.until(showing: .idle(pending: 0))
          #expect(try server.challengeStatus(login.transaction) == "declined")
        }
      }
    }

    @Test("The token shows a code for the portal") func codeForPortal() async throws {
      let serial = try await enrolled()
      try await withPolicy("code", ["push_code_to_phone": "1"]) {
        try await serve { _ in
          let login = try server.trigger(serial)
          await perform(.hold)
          let digits = panel.shown.compactMap { if case .code(let digits) = $0 { digits } else { nil } }.last
          let code = try #require(digits).map(String.init).joined()
          #expect(code.count == 2)
          #expect(try server.challengeStatus(login.transaction) == "pending")
          #expect(try server.finalize(serial, login.transaction, code: code) == "ACCEPT")
        }
      }
    }

    @Test("A request without an answer leaves the panel, and the server accepts nothing") func noAnswer() async throws {
      let serial = try await enrolled()
      try server.set("PushChallengeValidityTime", to: "3")
      defer { try? server.set("PushChallengeValidityTime", to: "120") }
      try await serve { _ in
        let login = try server.trigger(serial)
        await panel.until(challenges: 1)
        await panel.until(showing: .idle(pending: 0))
        #expect(try server.challengeStatus(login.transaction) == "pending")
        #expect(try server.finalize(serial, login.transaction) != "ACCEPT")
      }
    }

    @Test("A token that was enrolled again works, and notices its deletion") func enrolledAgainAndDeleted() async throws
    {
      let serial = try await enrolled()
      _ = try await enroll(server.makeToken(again: serial).url)
      try await serve { token in
        let login = try server.trigger(serial)
        await perform(.hold)
        #expect(try server.challengeStatus(login.transaction) == "accept")
        try server.deleteToken(serial)
        _ = try await eventually("the deletion is noticed") {
          try await token.validate().disenrolledAccounts.isEmpty ? nil : true
        }
        #expect(try await token.validate().disenrolledAccounts.map(\.text) == ["desk"])
      }
    }
  }
}
