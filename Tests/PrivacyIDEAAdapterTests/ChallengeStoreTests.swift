// SPDX-License-Identifier: Apache-2.0
import Cryptography
import JSONValues
import MobileAuth
import Testing

@testable import PrivacyIDEAAdapter

@Suite("The store of challenges", .timeLimit(.minutes(5))) struct ChallengeStoreTests {
  private let store = ChallengeStore(of: TokenServerID("pi.example"))

  private func element(_ nonce: String, isForged: Bool = false) -> JSONValue {
    var members = ChallengeTests.element(["nonce": nonce])
    if isForged { members["title"] = .text("Another title") }
    return .object(members)
  }

  private func nonces(after list: [JSONValue]) -> Set<String> {
    _ = store.replace(
      list, of: AccountID("alice"), serial: ChallengeTests.serial, key: ChallengeTests.serverKey.publicKey,
      now: MonotonicInstant(uptime: .zero), serverMilliseconds: 0)
    return Set(store.entries.values.map(\.challenge.nonce))
  }

  /// A server that lists forged challenges would otherwise cost a verification for each of them, with every list.
  @Test("Verifies no more of a list after some forged challenges, and keeps those that it knows")
  func forgedChallenges() {
    let known = element("KNOWN")
    #expect(nonces(after: [known]) == ["KNOWN"])
    let forged = (1...ChallengeStore.mostForged).map { element("FORGED\($0)", isForged: true) }
    #expect(nonces(after: forged.dropLast() + [element("NEW"), known]) == ["KNOWN", "NEW"])
    #expect(nonces(after: forged + [element("NEWER"), known]) == ["KNOWN"])
    #expect(nonces(after: [element("NEWER"), known] + forged) == ["KNOWN", "NEWER"])
  }

  @Test("Verifies a limited number of challenges of each list, and the others with the next one")
  func manyChallenges() {
    let most = ChallengeStore.mostVerified
    let list = (0...most).map { element("NONCE\($0)") }
    #expect(nonces(after: list) == Set((0..<most).map { "NONCE\($0)" }))
    #expect(nonces(after: list).count == most + 1)
  }
}
