// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Boards
import Cryptography
import MobileAuth
import Testing

@testable import TokenDaemon

@Suite(.timeLimit(.minutes(5))) struct KeyDerivationCostTests {
  @Test("A PIN can be set with every cost that a board profile can have", arguments: 1...24)
  func everyCost(log2N: Int) throws {
    let toml = """
      name = "b"
      description = "d"
      kind = "simulated"
      [keypad]
      kind = "simulated"
      scrypt_log2_n = \(log2N)
      """
    guard let profile = try? BoardProfile(parsing: toml, file: "f") else {
      #expect(!(14...17).contains(log2N))
      return
    }
    let board = try RunningBoard(profile, clock: TokenEnvironment.test(SystemClock()).clock)
    #expect(board.keyDerivation.cost == 1 << UInt64(log2N))
    #expect(board.keyDerivation.areAccepted)
  }
}
