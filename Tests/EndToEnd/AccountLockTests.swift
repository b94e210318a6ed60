// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ProgramHarness
import TestAM
import Testing

extension EndToEnd {
  /// Locks set and removed by the user: `lock` and `unlock`.
  @Suite struct AccountLocks {
    private static let secret = "IBAUEQ2EIVDEOSCJJJFUYTKOJ5IFCUST"
    private static let code = "467851"
    /// `{"deviceTampering":{"score":0.8}}`
    private static let policies = "eyJkZXZpY2VUYW1wZXJpbmciOnsic2NvcmUiOjAuOH19"

    private struct Shown: Decodable { let locked: String? }

    private struct Kept: Decodable {
      let account: String
      let type: String
      let state: String
      let transaction: String
    }

    @Test("An account at AM answers nothing until it is unlocked") func anAccountAtAMAnswersNothingUntilItIsUnlocked()
      async throws
    {
      try await withPingAMScene { fixture in
        let token = fixture.token
        let uri = fixture.am.registrationURI(
          "ann", oath: "secret=\(Self.secret)", policies: #"{"deviceTampering":{"score":0.8}}"#)
        try await token.enroll(uri, name: "ann").succeeded()
        #expect(fixture.am.finishRegistration(of: "ann") != nil)

        let nameless = try await token.command("lock", "ann")
        #expect(nameless.exit == .code(64) && nameless.errors.hasSuffix("it has deviceTampering"))
        let strange = try await token.command("lock", "ann", "--policy", "biometricAvailable", "--json")
        #expect(strange.exit == .code(64) && strange.errors.contains("\"number\":6100002"))
        let early = try await token.command("unlock", "ann", "--json")
        #expect(early.exit == .code(77) && early.errors.contains("\"number\":6100004"))
        try await token.command("lock", "ann", "--policy", "deviceTampering").succeeded()
        let second = try await token.command("lock", "ann", "--policy", "deviceTampering", "--json")
        #expect(second.exit == .code(77) && second.errors.contains("\"number\":6100003"))

        let older = try await nothingCanBeDone(in: fixture, waiting: 1)
        try await token.kill9()
        try await token.start()
        let newer = try await nothingCanBeDone(in: fixture, waiting: 2)

        let mark = try token.log.mark
        try await token.command("unlock", "ann").succeeded()
        #expect(try await shown(by: token) == nil)
        // Now the requests are shown, newest first.
        for request in [newer, older] {
          try await token.answer(request.token, with: .hold, from: mark)
          try await token.log.line(with: "settled request \(request.token)", "approved", from: mark)
          #expect(fixture.am.verify(request.push) == .isTrue)
        }
        try await token.command("otp", "ann").succeeded()
        let login = try await fixture.login()
        try await token.answer(login.token, with: .hold, from: login.mark)
        #expect(try await fixture.ending(of: login).hasPrefix("approved"))
        #expect(fixture.am.verify(login.push) == .isTrue)
        let acts = try await token.audit().filter { ["locked", "unlocked"].contains($0.kind) }
        #expect(acts.map(\.kind) == ["locked", "unlocked"] && acts.allSatisfy { $0.account == "ann" })
        #expect(acts.first?.detail == "with the policy deviceTampering")

        let history = try await token.command("history", "ann", "--json").succeeded().decoded([Kept].self)
        #expect(history.map(\.state) == ["approved", "approved", "approved"])
        #expect(history.allSatisfy { $0.account == "ann" && $0.type == "push" })
        #expect(history.first?.transaction == login.token)
        #expect(try await token.command("history", "nobody").exit == .code(64))
      }
    }

    /// The message is stored and the log has the origin of the login, but the request is not shown.
    /// - Parameter count: the number of pending requests.
    private func nothingCanBeDone(in fixture: PingAMFixture, waiting count: Int) async throws -> PingAMFixture.Login {
      let token = fixture.token
      for refused in [
        try await token.command("otp", "ann"), try await token.command("rename", "ann", "anna"),
        try await token.command("mailbox", "ann", "--set", "elsewhere"),
      ] {
        #expect(refused.exit == .code(77) && refused.errors.contains("locked by the user"), "\(refused)")
        #expect(refused.output.isEmpty && !refused.errors.contains("6100000"))
      }
      #expect(try await shown(by: token)?.contains("deviceTampering") == true)
      let mark = try token.log.mark
      let push = try #require(fixture.am.send("ann", timeout: 600))
      try await fixture.deliver(push)
      let name = try await eventually("\(count) requests that wait") {
        let waiting = try await token.pending()
        return waiting.count == count ? waiting.first : nil
      }
      try await token.log.line(
        with: "opened request \(name)", "locked by the user with the policy deviceTampering", "says \"", from: mark)
      #expect(try await token.audit(of: name).map(\.kind) == ["opened"])
      #expect(try await fixture.bring(push.envelope).decoded(PingAMFixture.Brought.self).known)
      #expect(fixture.am.verify(push) == .waiting)
      try await token.shows("idle, connected")
      return PingAMFixture.Login(push: push, token: name, mark: mark)
    }

    private func shown(by token: TestToken) async throws -> String? {
      try await token.command("accounts", "--json").succeeded().decoded([Shown].self).first?.locked
    }

    @Test("One time passwords are locked without a policy") func oneTimePasswordsAreLockedWithoutAPolicy() async throws
    {
      try await withOneTimePasswords { token, _ in
        #expect(try await token.command("lock", "alice", "--policy", "deviceTampering").exit == .code(64))
        try await token.command("lock", "alice").succeeded()
        #expect(try await token.command("lock", "alice", "--json").errors.contains("\"number\":6100003"))
        for outcome in [try await token.command("otp"), try await token.command("rename", "alice", "anna")] {
          #expect(outcome.exit == .code(77) && outcome.errors.contains("locked by the user"), "\(outcome)")
        }
        try await token.command("unlock", "alice").succeeded()
        // The counter has not advanced.
        #expect(try await token.command("otp").succeeded().output == Self.code)
        #expect(try await token.command("unlock", "alice", "--json").errors.contains("\"number\":6100004"))
        #expect(try await token.command("lock", "nobody").exit == .code(64))
        #expect(try await token.audit().map(\.kind) == ["enrolled", "locked", "unlocked", "code-shown"])
      }
    }

    @Test("The user cannot unlock what a policy locks") func userCannotUnlockWhatAPolicyLocks() async throws {
      try await withOneTimePasswords { token, folder in
        try await token.command("lock", "alice").succeeded()
        let edited = try await token.edited(in: folder)
        // The user's own lock is removed, the policy's lock stays.
        #expect(try await edited.command("unlock", "alice").succeeded().output.contains("deviceTampering"))
        let refused = try await edited.command("unlock", "alice", "--json")
        #expect(refused.exit == .code(77) && refused.errors.contains("its policy deviceTampering does not hold"))
        #expect(refused.errors.contains("approval-token log --verify") && refused.errors.contains("\"number\":6100000"))
        let locked = try await edited.command("lock", "alice", "--json")
        #expect(locked.exit == .code(77) && locked.errors.contains("\"number\":6100003"))
        #expect(try await edited.command("otp").exit == .code(77))
      }
    }

    @Test("An account of the reference token server has no lock") func anAccountOfTheReferenceTokenServerHasNoLock()
      async throws
    {
      try await withScene { fixture in
        let outcome = try await fixture.token.command("lock", fixture.account)
        #expect(outcome.exit == .code(64) && outcome.errors.contains("of one-time passwords and PingAM can"))
      }
    }

    private func withOneTimePasswords(_ body: (TestToken, TemporaryDirectory) async throws -> Void) async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      let token = TestToken(state: folder.file("token"), board: "simulated")
      let uri = "otpauth://hotp/ACME:alice?secret=\(Self.secret)&policies=\(Self.policies)"
      try await token.enroll(uri).succeeded()
      try await body(token, folder)
      #expect(try await token.provesItsLog())
    }
  }
}
