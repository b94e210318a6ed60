import Boards

@testable import ApprovalToken
@testable import ServerParsers

/// User-written files: board profiles and the configurations of both programs.
func readConfiguration(_ bytes: [UInt8]) {
  let input = Input(bytes, choices: 3)
  switch input.choice {
  case 0: _ = try? BoardProfile(parsing: input.text, file: "board.toml")
  case 1: _ = try? Configuration(parsing: input.text, file: "config.toml")
  default: _ = try? ConfigurationFile.parse(input.text)
  }
}
