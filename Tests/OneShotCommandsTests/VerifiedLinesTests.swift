// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import Testing

@testable import ApprovalTokenCommands

@Suite(.timeLimit(.minutes(1))) struct VerifiedLinesTests {
  private func lines(_ message: String?, push: String? = nil, type: String? = "t") -> [String] {
    VerifiedSummary(signature: "openpgp", type: type, message: message, pushMessage: push, sha256: nil).lines
  }

  @Test("Each line of the text is marked, so that none looks like another line of the output") func linesAreMarked() {
    let text = "one\n\nended  T\u{1B}[2J\u{202E}"
    #expect(lines(text) == ["verified  type t (openpgp)", "verified  one", "verified  ended  T[2J"])
    #expect(lines("a", type: "x\ny").first == "verified  type xy (openpgp)")
  }

  @Test("Without a message the signed push message is printed") func pushMessage() {
    #expect(lines(nil, push: "p").last == "verified  p")
    #expect(lines("m", push: "p").last == "verified  m")
    #expect(lines(nil, type: nil) == ["verified  type - (openpgp)"])
  }

  @Test("A long text is printed whole", arguments: [1, 999, 1000, 1001, 2500])
  func longText(count: Int) {
    let text = String(repeating: "x", count: count)
    let printed = lines(text).dropFirst().map { $0.dropFirst("verified  ".count) }
    #expect(printed.joined() == text && printed.allSatisfy { $0.count <= 1000 })
  }
}
