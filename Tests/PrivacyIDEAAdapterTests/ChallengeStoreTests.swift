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

  private func verified(_ list: [JSONValue]) -> ChallengeStore.VerifiedList {
    store.verify(
      list, of: AccountID("alice"), serial: ChallengeTests.serial, key: ChallengeTests.serverKey.publicKey,
      now: MonotonicInstant(uptime: .zero), serverMilliseconds: 0)
  }

  private var nonces: Set<String> { Set(store.entries.values.map(\.challenge.nonce)) }

  private func nonces(after list: [JSONValue]) -> Set<String> {
    let number = store.nextList()
    _ = store.replace(with: verified(list), number: number)
    return nonces
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

  @Test("A list that was requested before the one applied last changes nothing") func lateList() {
    let (first, second) = (store.nextList(), store.nextList())
    #expect(store.replace(with: verified([element("NEW")]), number: second) == nil)
    #expect(store.replace(with: verified([element("FORGED", isForged: true)]), number: first) == nil)
    #expect(nonces == ["NEW"] && store.changes == 1)
    #expect(nonces(after: []).isEmpty && store.changes == 2)
  }

  /// Fails if a list gives a counted choice back, or restores a challenge that this token has answered.
  @Test("A choice that is counted, and an answer, while a list is verified stay") func meanwhile() {
    let list = [element("CHOICE"), element("ANSWERED")]
    let (choice, answered) = (
      store.transaction(serial: ChallengeTests.serial, nonce: "CHOICE"),
      store.transaction(serial: ChallengeTests.serial, nonce: "ANSWERED")
    )
    #expect(nonces(after: list) == ["CHOICE", "ANSWERED"])
    let number = store.nextList()
    let verified = verified(list)
    #expect(store.countWrongChoice(choice) == 1)
    store.finish(answered)
    _ = store.replace(with: verified, number: number)
    #expect(nonces == ["CHOICE"])
    #expect(store.entry(choice)?.wrongChoices == 1)
  }
}
