// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import BuiltPrograms
import Cryptography
import Foundation
import MobileAuth
import Secrets
import TestBadge
import TestSecurityKey
import Testing

@testable import AuthenticatorPlugins

/// The program `reader-key` with libfido2 and libpcsclite, over a private pcscd with a virtual reader.
@Suite("The plug-in for security keys, over NFC", .timeLimit(.minutes(5))) final class KeyCardTests {
  private let reader: TestPCSC
  private let key: TestSecurityKey
  private let card: TestKeyCard
  private let challenge = [UInt8](0..<32)
  private static let leave = DriverEvent.waiting("leave the security key on the reader")
  private static let again = DriverEvent.waiting("remove the security key, then present it again")

  init() throws {
    reader = try TestPCSC()
    // Its credential ID makes the messages to sign longer than one command.
    key = try TestSecurityKey(credentialSize: 300)
    card = TestKeyCard(of: key)
  }

  /// - Parameter source: `--cards`, or `--any` with the keys that are plugged in.
  private func driver(source: String = "--cards", beside other: OtherCardProgram? = nil) throws -> PluginDriver {
    let socket = other?.socket ?? reader.socket
    var configuration = PluginConfiguration(
      authenticator: "key",
      program: .command([
        "/usr/bin/env", "PCSCLITE_CSOCK_NAME=\(socket)", try BuiltProgram.path("reader-key-probe"), source,
      ]))
    configuration.timeLimit = .seconds(120)
    return PluginDriver(configuration, patience: .long)
  }

  private func call(_ step: DriverCall.Step, _ registration: [UInt8] = []) -> DriverCall {
    DriverCall(
      step: step, server: "auth.example.org", account: "alice", authenticator: "key", challenge: challenge,
      registration: registration)
  }

  /// One use: at each hint the test acts.
  private func use(
    _ step: DriverCall.Step, _ registration: [UInt8] = [], source: String = "--cards",
    beside other: OtherCardProgram? = nil, at hint: (DriverEvent) async throws -> Void
  ) async throws -> [DriverEvent] {
    var all: [DriverEvent] = []
    for await event in try driver(source: source, beside: other).events(for: call(step, registration)) {
      all.append(event)
      if !event.isAnswer { try await hint(event) }
    }
    return all
  }

  /// - Returns: the data of the answer, whose signature is right.
  private func proof(_ events: [DriverEvent]) throws -> (proof: KeyProof, registration: [UInt8]) {
    guard case .data(let data) = events.last else { throw NoDataError(events: events) }
    let proof = try data.keyProof()
    let signed = Array(proof.authenticatorData) + challenge
    #expect(key.key.publicKey.isValidDERSignature(Array(proof.signature), for: signed))
    return (proof, data.registration)
  }

  private func registered() async throws -> [UInt8] {
    let (reader, card) = (reader, card)
    let events = try await use(.register) {
      if $0 == .waiting("present the security key") { card.insert(into: reader) }
    }
    let registration = try proof(events).registration
    card.remove()
    try await reader.untilEmpty()
    return registration
  }

  @Test("It registers, and signs later challenges only after it was presented again") func registration() async throws {
    let (reader, card) = (reader, card)
    key.set(.touched(after: .milliseconds(300)))
    let events = try await use(.register) { if $0 != Self.leave { card.insert(into: reader) } }
    #expect(events.dropLast() == [.waiting("present the security key"), Self.leave, Self.leave])
    let (first, registration) = try proof(events)
    let point = [4] + key.key.publicKey.x + key.key.publicKey.y
    #expect(first.publicKey.map(Array.init) == point && registration.count == 64 + 300)
    // The message to sign had several parts, and the reply with the key, too.
    #expect(card.chained > 0 && card.continued > 0)

    var isRemoved = false
    let later = try await use(.authenticate, registration) { hint in
      guard hint == Self.again else { return }
      isRemoved = true
      card.remove()
      try await reader.untilEmpty()
      card.insert(into: reader)
    }
    #expect(try proof(later).proof.publicKey == nil && isRemoved)
    #expect(key.calls == [1, 2, 2])
  }

  @Test("Beside keys that are plugged in, one that is on the reader already must be presented again")
  func anywhere() async throws {
    let registration = try await registered()
    let (reader, card) = (reader, card)
    card.insert(into: reader)
    try await card.untilCounted()
    let again = DriverEvent.waiting("plug in the security key, or remove it from the reader and present it again")
    var hints: [DriverEvent] = []
    let events = try await use(.authenticate, registration, source: "--any") { hint in
      hints.append(hint)
      guard hint == again else { return }
      card.remove()
      try await reader.untilEmpty()
      card.insert(into: reader)
    }
    #expect(hints.first == again)
    _ = try proof(events)
    #expect(key.calls == [1, 2, 2])
  }

  @Test(
    "A card that lies, is pulled out or is no security key gives no data, and the right one can follow",
    arguments: [
      (.isNoSecurityKey, "this card is not a security key, or was removed"),
      (.isU2FOnly, "this card is not a security key, or was removed"),
      (.refusesChains, "the security key does not answer as it should"),
      (.hasMoreOfNothing, "the security key does not answer as it should"),
      (.neverEnds, "the security key does not answer as it should"), (.talksNonsense, nil), (.isPulledOut, nil),
    ] as [(TestKeyCard.Behavior, String?)])
  func wrong(behavior: TestKeyCard.Behavior, reason: String?) async throws {
    let registration = try await registered()
    let (reader, card) = (reader, card)
    let wrong = TestKeyCard(behavior, of: key)
    var isRightWanted = false
    let events = try await use(.authenticate, registration) { hint in
      if case .retry = hint {
        isRightWanted = true
        wrong.remove()
        try await reader.untilEmpty()
        card.insert(into: reader)
      } else if hint == .waiting("present the security key"), !isRightWanted {
        wrong.insert(into: reader)
      }
    }
    let retries = events.filter { if case .retry = $0 { true } else { false } }
    #expect(retries.count == 1)
    if let reason { #expect(retries == [.retry(reason)]) }
    _ = try proof(events)
  }

  @Test(
    "A key that signs with another key, or waits in vain for a touch, gives no data, and can be presented again",
    arguments: [
      (.signsWithAnotherKey, "this security key does not sign with the registered key"),
      (.givesUp(after: .milliseconds(300), with: 0x27), "the security key was not touched in time"),
    ] as [(TestSecurityKey.Behavior, String)])
  func presentedAgain(behavior: TestSecurityKey.Behavior, reason: String) async throws {
    let registration = try await registered()
    let (reader, card, key) = (reader, card, key)
    key.set(behavior)
    let events = try await use(.authenticate, registration) { hint in
      if case .retry = hint {
        key.set(.touched(after: .zero))
        card.remove()
        try await reader.untilEmpty()
      }
      if hint != Self.leave { card.insert(into: reader) }
    }
    #expect(events.contains(.retry(reason)))
    _ = try proof(events)
  }

  @Test("Another program's resets cost no try, and it is not disturbed at the end of the use") func besideAnother()
    async throws
  {
    let registration = try await registered()
    let (reader, card) = (reader, card)
    let other = try OtherCardProgram(at: reader, resets: 2)
    let events = try await use(.authenticate, registration, beside: other) { hint in
      if hint != Self.leave { card.insert(into: reader) }
    }
    #expect(events.dropLast() == [.waiting("present the security key"), Self.leave])
    _ = try proof(events)
    #expect(other.lines(3) == ["reset", "reset", "used"])
  }

  @Test("A card that never answers ends the program after 4 s") func hangs() async throws {
    let registration = try await registered()
    let reader = reader
    let wrong = TestKeyCard(.hangs, of: key)
    var time = Duration.seconds(120)
    // One of three times is enough, on a busy machine.
    for _ in 1...3 where time >= .seconds(30) {
      let began = ContinuousClock.now
      let events = try await use(.authenticate, registration) { if $0 != Self.leave { wrong.insert(into: reader) } }
      time = ContinuousClock.now - began
      #expect(events.suffix(2) == [.retry("the security key does not answer"), .failed("it ended without an answer")])
      wrong.remove()
      try await reader.untilEmpty()
    }
    #expect(time < .seconds(30))
  }

  @Test("A key that waits is canceled when its answer is not wanted any more") func canceled() async throws {
    let registration = try await registered()
    key.set(.untouched)
    for await event in try driver().events(for: call(.authenticate, registration)) {
      if event == .waiting("present the security key") { card.insert(into: reader) }
      guard event == Self.leave else { continue }
      try await eventually("the key is asked") { key.calls.count >= 3 }
      break
    }
    try await eventually("the wait for a touch is canceled") { key.canceled > 0 }
    #expect(key.canceled == 1 && key.calls == [1, 2, 2])
  }

  @Test("A key that is removed while it waits can be presented again") func removedInTheMiddle() async throws {
    let registration = try await registered()
    let (reader, card, key) = (reader, card, key)
    key.set(.untouched)
    var isRemoved = false
    let events = try await use(.authenticate, registration) { hint in
      switch hint {
      // After the removal, the program may look before pcscd has noticed it.
      case .waiting("present the security key"), Self.again: card.insert(into: reader)
      case Self.leave:
        guard !isRemoved else { return }
        isRemoved = true
        try await eventually("the key is asked") { key.calls.count >= 3 }
        key.set(.touched(after: .zero))
        card.remove()
        try await reader.untilEmpty()
      default: break
      }
    }
    #expect(isRemoved && events.contains { if case .retry = $0 { true } else { false } })
    _ = try proof(events)
  }

  /// Fails if what is in a reader that was unplugged meanwhile is asked: its user has not presented it.
  @Test(
    "A card in a reader that was replaced, or that is listed again, does not count as presented",
    arguments: ["Another PCD", "Virtual PCD"])
  func listedAgain(name: String) async throws {
    let registration = try await registered()
    let (reader, card, key) = (reader, card, key)
    var stopped = 0
    let events = try await use(.authenticate, registration) { hint in
      guard hint != Self.leave else { return }
      key.set(.signsWithAnotherKey)
      stopped =
        (try? await withStoppedChildren(of: "reader-key-probe", with: reader.socket) {
          reader.stop()
          try reader.start(withReader: name)
          card.insert(into: reader)
          try await card.untilCounted()
        }) ?? 0
      try await reader.untilListed()
      #expect(key.calls == [1, 2])
      key.set(.touched(after: .zero))
      card.remove()
      try await reader.untilEmpty()
      card.insert(into: reader)
    }
    #expect(stopped == 1 && events.dropLast() == [.waiting("present the security key"), Self.leave])
    #expect(key.calls == [1, 2, 2])
    _ = try proof(events)
  }

  @Test("Of two cards none is used; a pcscd that starts later is") func twoCardsAndRestart() async throws {
    let registration = try await registered()
    let (reader, card) = (reader, card)
    let other = TestKeyCard(of: key)
    other.insert(into: reader, slot: 1)
    try await other.untilCounted()
    let events = try await use(.authenticate, registration) { hint in
      if case .retry = hint {
        other.remove()
        card.remove()
        reader.stop()
        try? reader.start()
        try await reader.untilListed()
        card.insert(into: reader)
      } else if hint != Self.leave {
        card.insert(into: reader)
      }
    }
    #expect(events.contains(.retry("there is more than one card: present only the security key")))
    _ = try proof(events)
  }
}
