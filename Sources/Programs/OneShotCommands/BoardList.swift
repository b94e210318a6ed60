// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import Boards
import ControlProtocol

extension BoardCommand.List: OneShotCommand {
  private struct Response: Encodable {
    var name: String?
    var description: String?
    var file: String
    var error: String?
  }

  package func perform() async throws {
    try await reporting(json) {
      let responses = BoardCatalog.all().map { file, result in
        switch result {
        case .success(let profile): Response(name: profile.name, description: profile.description, file: file)
        case .failure(let failure): Response(file: file, error: "\(failure)")
        }
      }
      guard !responses.isEmpty else { throw CommandError(.unavailable, BoardCatalog.noProfiles) }
      json.print(responses) { responses in
        responses.map { response in
          response.name.map { "\($0)  \(response.description ?? "")" } ?? "unusable: \(response.error ?? "")"
        }
        .joined(separator: "\n")
      }
    }
  }
}
