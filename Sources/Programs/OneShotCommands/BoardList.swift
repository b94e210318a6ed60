// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import Boards

extension BoardCommand.List: OneShotCommand {
  private struct Response: Encodable {
    var name: String?
    var description: String?
    var file: String
    var error: String?
  }

  package func perform() async throws {
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
