// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

extension EndToEnd {
  @Suite struct Secrets {
    /// Eight digits, because they do not occur by chance.
    private static let policy = """
      max_pin_attempts = 3
      [application.pin_policy]
      length = 8
      max_repeats = 2
      """
    private static let refused = "72000418"
    private static let first = "27049163"
    private static let wrong = "50218347"
    private static let second = "71940258"

    /// No PIN that was typed during the token's lifetime, including rejected and wrong ones, is in any file or output.
    @Test("No PIN is written or said") func noPINIsWrittenOrSaid() async throws {
      try await withPINScene(users: [], settings: Self.policy) { fixture in
        let token = fixture.token
        var said: [String] = []
        let enrollment = try token.begin(
          "enroll", try await fixture.server.activation(for: "alice"), "--name", "alice", "--json")
        try await token.type(Self.refused, when: .newPIN)
        try await token.choose(Self.first)
        said += try await enrollment.outcome().words
        let fixture = EndToEndFixture(
          folder: fixture.folder, server: fixture.server, token: token, portal: fixture.portal,
          device: try #require(try await fixture.portal.devices().first).id, account: "alice")

        let transaction = try await fixture.askForPIN()
        try await token.type(Self.wrong)
        try await token.type(Self.first)
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        let change = try token.begin("pin", "change")
        try await token.type(Self.first)
        try await token.choose(Self.second)
        said += try await change.outcome().words
        try await fixture.expectApproval(typing: Self.second)
        let canceled = try token.begin("login")
        try await token.asks("PIN wanted")
        try await token.press(keys: Self.second.map(String.init) + ["escape", "escape"])
        said += try await canceled.outcome().words

        for words in [["status"], ["accounts"], ["log", "--lines", "1000"], ["logout"]] {
          said += try await run(Program.token, words + ["--json", "--state", token.state]).succeeded().words
        }
        said += try await fixture.server.command("device", "list").words
        said += try await fixture.portal.call("GET", "/authenticate/transaction/\(transaction)").outcome.words
        try await expectNoPIN(in: fixture, said + (try token.running.output.lines))
        // A stopped token has removed its temporary data, so search before the stop too.
        try await token.stop()
        try await fixture.server.stop()
        try await expectNoPIN(in: fixture, said)
        try await fixture.server.start()
        try await token.start()
      }
    }

    private func expectNoPIN(in fixture: EndToEndFixture, _ said: [String]) async throws {
      let words = said + (try fixture.token.log.lines) + (try fixture.server.log.lines)
      var places = ["what was said": Data(words.joined(separator: "\n").utf8)]
      for folder in [fixture.token.state, fixture.server.directory] {
        for file in try FileManager.default.subpathsOfDirectory(atPath: folder) {
          // All files except sockets, which have no content.
          places["\(folder)/\(file)"] = FileManager.default.contents(atPath: "\(folder)/\(file)")
        }
      }
      for pin in [Self.refused, Self.first, Self.wrong, Self.second] {
        let found = places.filter { $0.value.range(of: Data(pin.utf8)) != nil }.map(\.key)
        #expect(found.isEmpty, "\(pin)")
      }
      // Positive control: the same search finds the user's name in the output, in the token's storage and at the
      // server.
      let found = places.filter { $0.value.range(of: Data("alice".utf8)) != nil }.map(\.key)
      #expect(found.contains("what was said"))
      for folder in [fixture.token.state, fixture.server.directory] {
        #expect(found.contains { $0.hasPrefix(folder) }, "\(folder): \(places.keys.sorted())")
      }
    }
  }
}

extension Outcome {
  fileprivate var words: [String] { [output, errors] }
}
