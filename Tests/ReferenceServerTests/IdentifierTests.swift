// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import ReferenceServer
@testable import TokenServerCore

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct IdentifierTests {
  private static let composed = "jos\u{E9}"
  private static let decomposed = "jose\u{301}"

  @Test("Users are equal if their bytes are, as in the database") func users() {
    #expect(Self.composed == Self.decomposed)
    #expect(UserID(Self.composed) != UserID(Self.decomposed))
    #expect(Set([UserID(Self.composed), UserID(Self.decomposed), UserID(Self.composed)]).count == 2)
  }

  @Test(
    "A name that a form cannot have is refused when it is added",
    arguments: [(30, true), (31, false)])
  func marks(count: Int, isValid: Bool) {
    let name = "a" + String(repeating: "\u{301}", count: count)
    #expect((try? validated(name, as: "a user")) == (isValid ? name : nil))
  }

  @Test(
    "A name that looks like another one is refused when it is added",
    arguments: ["alice\u{3164}", "al\u{34F}ice", "\u{115F}alice", "alice\u{2800}", "alice\u{E0100}", "alice\u{FE0F}"])
  func invisible(name: String) {
    #expect((try? validated(name, as: "a user")) == nil)
  }
}
