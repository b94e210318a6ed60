// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Boards
import FrontPanel
import MobileAuth

struct BoardCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "board", abstract: "List and check boards, propose a board profile, and explain the LED.",
    subcommands: [List.self, Check.self, Probe.self, Legend.self])

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List the board profiles that can be found.")

    private struct Response: Encodable {
      var name: String?
      var description: String?
      var file: String
      var error: String?
    }

    @OptionGroup var json: JSONOption

    func run() async throws {
      try await reporting(json) {
        let facts = BoardCatalog.all().map { file, result in
          switch result {
          case .success(let profile): Response(name: profile.name, description: profile.description, file: file)
          case .failure(let failure): Response(file: file, error: "\(failure)")
          }
        }
        json.print(facts) { facts in
          facts.map { fact in
            fact.name.map { "\($0)  \(fact.description ?? "")" } ?? "unusable: \(fact.error ?? "")"
          }
          .joined(separator: "\n")
        }
      }
    }
  }

  struct Legend: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Explain the LED.")

    private struct Row: Encodable {
      var meaning: String
      var pattern: String
      var color: String
    }

    @OptionGroup var json: JSONOption

    func run() async throws {
      let rows = Indication.legend.map(\.row).map {
        Row(meaning: $0.meaning, pattern: $0.patternInWords, color: $0.color.rawValue)
      }
      json.print(rows) { _ in Indication.legendTable }
    }
  }
}
