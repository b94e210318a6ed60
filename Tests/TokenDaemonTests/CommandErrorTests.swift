// SPDX-License-Identifier: Apache-2.0
import Boards
import ControlProtocol
import Testing

@testable import TokenDaemon

@Suite(.timeLimit(.minutes(5))) struct CommandErrorTests {
  @Test("An unknown name of a board is wrong usage, a file that cannot be read is bad data")
  func boards() {
    let codes: [(String, CommandError.Code)] = [("nope", .usage), ("/nowhere/board.toml", .badData)]
    for (name, code) in codes {
      #expect {
        try BoardCatalog.profile(name)
      } throws: { error in
        CommandError(explaining: error)?.code == code
      }
    }
  }
}
