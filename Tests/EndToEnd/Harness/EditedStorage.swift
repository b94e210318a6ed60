// SPDX-License-Identifier: Apache-2.0
import ProgramHarness

extension TestToken {
  /// A copy of the token's storage with an edited audit chain.
  func edited(in folder: TemporaryDirectory) async throws -> TestToken {
    let copy = folder.file("copy")
    try await run("cp", ["-r", state, copy]).succeeded()
    let edit = """
      import sqlite3; card = sqlite3.connect('\(copy)/vault.sqlite3')
      card.execute("UPDATE audit SET detail = 'nothing happened' WHERE sequence = 1"); card.commit()
      """
    try await run("python3", ["-c", edit]).succeeded()
    return TestToken(state: copy, board: "simulated")
  }
}
