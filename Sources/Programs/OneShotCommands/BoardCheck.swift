// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ArgumentParser
import Boards
import DisplayText
import Glibc

extension BoardCommand.Check: OneShotCommand {
  struct Response: Encodable {
    var subject: String
    var good: Bool
    var text: String
    var next: String?

    /// For a terminal. Profiles and devices have chosen parts of the texts, and are not trusted.
    var lines: [String] {
      var lines = ["\(good ? "ok  " : "BAD ")  \(subject): \(text)"]
      if let next { lines.append("      \(next)") }
      return lines.map { $0.sanitized(atMost: 2000, replacement: "\u{FFFD}") }
    }
  }

  package func perform() async throws {
    try await reporting(json) {
      let responses =
        if let board { try await Self.open(try BoardCatalog.profile(board), aloud: !json.isWanted) } else {
          try readAll()
        }
      if json.isWanted { json.print(responses) { _ in "" } }
      if responses.contains(where: { !$0.good }) { throw ExitCode(1) }
    }
  }

  /// - Parameter aloud: whether each finding is printed immediately, so that the user knows which LED to watch.
  private static func open(_ profile: BoardProfile, aloud: Bool) async throws -> [Response] {
    var responses = [Response(subject: "profile", good: true, text: "\(profile.name): \(profile.description)")]
    if aloud { try say(responses[0]) }
    for await finding in BoardCheck.findings(of: profile) {
      responses.append(
        Response(subject: finding.subject, good: finding.next == nil, text: finding.text, next: finding.next))
      if aloud { try say(responses[responses.count - 1]) }
    }
    return responses
  }

  private func readAll() throws -> [Response] {
    let responses = BoardCatalog.all().map { file, result in
      switch result {
      case .success(let profile): Response(subject: profile.name, good: true, text: file)
      case .failure(let failure):
        Response(subject: file, good: false, text: "\(failure)", next: "boards/README.md documents every key")
      }
    }
    if !json.isWanted { try responses.forEach(Self.say) }
    return responses
  }

  private static func say(_ response: Response) throws {
    for line in response.lines { print(line) }
    try flushResults()
  }
}
