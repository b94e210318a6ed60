// SPDX-License-Identifier: Apache-2.0
import Boards

@testable import GPIO
@testable import ServerParsers
@testable import TokenDaemon

/// User-written files: board profiles, the configurations of both programs, and credentials for the bench.
func readConfiguration(_ bytes: [UInt8]) {
  let input = Input(bytes, choices: 5)
  switch input.choice {
  case 0: _ = try? BoardProfile(parsing: input.text, file: "board.toml")
  case 1: _ = try? Configuration(parsing: input.text, file: "config.toml")
  case 2: _ = try? ConfigurationFile.parse(input.text)
  case 3: propose(input.text)
  default: readPortalFile(input.text)
  }
}

private func readPortalFile(_ text: String) {
  guard let file = try? PortalFile(parsing: text) else { return }
  require(!file.client.isEmpty && !file.secret.isEmpty, "a portal has a name and a secret")
  require(!(file.client + file.secret).contains(where: \.isNewline), "they are in one line")
}

/// Proposes a profile for a machine. Each line of the text is a GPIO chip: its label and the names of its lines,
/// separated by `|`.
private func propose(_ text: String) {
  let chips = text.split(separator: "\n").prefix(4).enumerated().map { number, line in
    let names = line.split(separator: "|", omittingEmptySubsequences: false).map { name in
      // Names from the kernel have at most 31 bytes.
      String(decoding: name.utf8.prefix(31), as: UTF8.self)
    }
    return ChipDescription(
      path: "/dev/gpiochip\(number)", label: names[0],
      // A profile can name at most 1024 lines.
      lines: names.dropFirst().prefix(1024).enumerated().map { offset, name in
        .init(offset: offset, name: name, consumer: offset % 7 == 6 ? name : nil, isOutput: offset % 5 == 4)
      })
  }
  guard let toml = BoardProposal(chips: chips, keypads: [], known: []).toml else { return }
  do { _ = try BoardProfile(parsing: toml, file: "board.toml") } catch { require(false, "\(error) in:\n\(toml)") }
}
