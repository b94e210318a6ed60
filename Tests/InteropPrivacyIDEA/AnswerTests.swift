// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

extension InteropPrivacyIDEA {
  /// The program, enrolled and answering.
  @Suite struct Answers {
    @Test("Enrolled from an argument, a file and standard input, with the service and without")
    func enrolledFromAnArgumentAFileAndStandardInputWithTheServiceAndWithout() async throws {
      let server = try PushServer.shared.get()
      let fixture = try PushServerFixture(at: server)
      let authority = fixture.folder.file("ca.pem")
      let tokens = try (0..<3).map { _ in try server.makeToken() }
      // Before the service runs, when the configuration is not read.
      let file = try fixture.folder.write("\n" + tokens[0].url + "\n", to: "url")
      try await fixture.token.command("enroll", "--file", file, "--name", "first", "--authorities", authority)
        .succeeded()
      try await fixture.token.command(
        "enrol", "-", "--name", "second", "--authorities", authority, input: tokens[1].url + "\n"
      ).succeeded()
      try await fixture.token.startConnected()
      try await fixture.enroll(tokens[2].url)
      #expect(try await fixture.token.accounts().map(\.account) == [tokens[2].serial, "first", "second"].sorted())

      let again = try await fixture.token.enroll(tokens[1].url, name: "other")
      #expect(again.exit == .code(77), "the credential works once: \(again)")
      try await fixture.token.command("rename", "second", "third").succeeded()
      for (account, token) in zip(["first", "third", tokens[2].serial], tokens) {
        let login = try await fixture.login(with: token.serial, account: account)
        try await fixture.expect(
          .hold, on: login, toEndAs: "approved, receipt ", seenAs: "accept", finally: "ACCEPT", with: token.serial)
      }
      let removed = try await fixture.token.command("remove", "third").succeeded()
      #expect(removed.output.contains("still lists it") && removed.errors.contains(tokens[1].serial))
      #expect(try await fixture.token.accounts().map(\.account) == [tokens[2].serial, "first"].sorted())
      try await fixture.end()
    }

    @Test(
      "A URI that is not a push token is rejected before a request is sent",
      arguments: ["otpauth://other/x?secret=AA", "pia://container/x?url=https%3A//h/", "otpauth://pipush/x?v=2"])
    func uriThatIsNotAPushTokenIsRejectedBeforeARequestIsSent(url: String) async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      let token = TestToken(state: folder.file("token"), board: "simulated")
      #expect(try await token.enroll(url).exit == .code(65))
      #expect(try await token.accounts().isEmpty && !token.hasState)
    }

    @Test("Denied with every reason, and the portal's result for each")
    func deniedWithEveryReasonAndThePortalsResultForEach() async throws {
      try await withDesk { fixture, serial in
        for (gesture, ending, status) in [
          (UserGesture.double, "denied (declined)", "cancelled"), (.cancelKeys, "denied (cancelled)", "cancelled"),
          (.notMe, "denied (not-me)", "declined"),
        ] {
          let login = try await fixture.login(with: serial)
          try await fixture.expect(
            gesture, on: login, toEndAs: ending, seenAs: status, finally: "REJECT", with: serial)
        }
      }
    }

    @Test("Number, letter and text: correct, wrong, and wrong at the attempt limit")
    func numberLetterAndTextCorrectWrongAndWrongAtTheAttemptLimit() async throws {
      try await withDesk { fixture, serial in
        for (kind, options) in [("NUMERIC", ""), ("ALPHABETIC", ""), ("CUSTOM", "dark blue:Größe:a|b:5%41")] {
          try fixture.server.policy(
            "presence", scope: "authentication",
            [
              "push_require_presence": "1", "push_presence_options": kind, "push_presence_num_options": "4",
              "push_presence_custom_options": options,
            ])
          defer { try? fixture.server.removePolicy("presence") }
          let right = try await fixture.login(with: serial)
          #expect(try await fixture.choose(right: true, on: right).contains("talking"))
          #expect(try await fixture.ending(of: right).hasPrefix("approved, receipt "))
          #expect(try fixture.server.challengeStatus(right.portal) == "accept")
          #expect(try fixture.server.finalize(serial, right.portal) == "ACCEPT")

          let wrong = try await fixture.login(with: serial)
          for round in 1...2 {
            #expect(try fixture.server.challengeStatus(wrong.portal) == "pending")
            try await fixture.choose(right: false, on: wrong)
            if round == 1 { try await fixture.token.log.line(with: "choice-wrong", "1 of 2", from: wrong.mark) }
          }
          #expect(try await fixture.ending(of: wrong).contains("2 wrong choices; the request was denied"))
          #expect(try fixture.server.challengeStatus(wrong.portal) == "declined")
        }
      }
    }

    @Test("Texts with bars and in any alphabet, and one that the server truncates to nothing")
    func textsWithBarsAndInAnyAlphabetAndOneThatTheServerTruncatesToNothing() async throws {
      struct Pending: Decodable, Equatable { let message, type: String }
      try await withDesk { fixture, serial in
        // The server counts the escaped letters, and drops a question that is too long, and its title.
        for (question, title, shown) in [
          ("Log in | as Größe 日本語?", "a|b", Pending(message: "Log in | as Größe 日本語?", type: "a|b")),
          (String(repeating: "ü", count: 300), "VPN", Pending(message: "Log in?", type: "")),
        ] {
          try fixture.server.policy(
            "texts", scope: "authentication", ["push_text_on_mobile": question, "push_title_on_mobile": title])
          defer { try? fixture.server.removePolicy("texts") }
          let login = try await fixture.login(with: serial)
          let pending = try await fixture.token.command("pending", "--json").succeeded().decoded([Pending].self)
          #expect(pending == [shown])
          try await fixture.expect(
            .hold, on: login, toEndAs: "approved", seenAs: "accept", finally: "ACCEPT", with: serial)
        }
      }
    }

    @Test("A code for the portal is in the status, and not in the log")
    func codeForThePortalIsInTheStatusAndNotInTheLog() async throws {
      try await withDesk { fixture, serial in
        try fixture.server.policy(
          "code", scope: "authentication",
          ["push_code_to_phone": "1", "push_code_to_phone_message": "Enter it at the desk"])
        defer { try? fixture.server.removePolicy("code") }
        let login = try await fixture.login(with: serial)
        try await fixture.expect(.hold, on: login, toEndAs: "approved", seenAs: "pending", with: serial)
        try await fixture.token.shows("type these digits into the portal")
        struct Status: Decodable {
          struct Code: Decodable, Equatable { let account, code, message: String }
          let codes: [Code]
        }
        let codes = try await fixture.token.command("status", "--json").succeeded().decoded(Status.self).codes
        let code = try #require(codes.first)
        #expect(codes.count == 1 && code.account == "desk" && code.message == "Enter it at the desk")
        #expect(code.code.wholeMatch(of: /\d\d/) != nil)
        #expect(
          try await fixture.token.command("status").succeeded().output.contains("type \(code.code) into the portal"))
        try await fixture.token.log.line(with: "a code has to be typed into the portal", from: login.mark)
        #expect(try fixture.server.finalize(serial, login.portal, code: code.code) == "ACCEPT")
      }
    }
  }
}

extension PushServerFixture {
  /// Finds the choice that the portal shows among the choices of `pending`, or another choice, and types its
  /// input.
  @discardableResult
  func choose(right: Bool, on login: Login) async throws -> String {
    struct Choice: Decodable { let key, option: String }
    struct Pending: Decodable { let choices: [Choice]? }
    let pending = try await token.command("pending", "--json").succeeded().decoded([Pending].self)
    let choices = try #require(pending.first?.choices)
    #expect(choices.count == 4)
    // "1 dark blue, 2 green", or "17, 42" if the shown number itself is typed.
    let shown = choices.map { $0.key == $0.option ? $0.key : "\($0.key) \($0.option)" }.joined(separator: ", ")
    #expect(login.announcement.contains(shown), "the log names them too")
    #expect(try await token.command("status").succeeded().output.contains(shown))
    let choice = try #require(choices.first { ($0.option == login.presence) == right })
    return try await token.type(choice.key, when: .number)
  }
}
