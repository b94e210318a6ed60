// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Cryptography
import Foundation
import MobileAuth
import Secrets
import TestBadge
import Testing

@testable import AuthenticatorPlugins

/// The program `reader-badge` with libpcsclite, over a private pcscd with a virtual reader.
@Suite("The plug-in for badges", .timeLimit(.minutes(5))) final class ReaderBadgeTests {
  private let reader: TestPCSC
  private let badge: TestBadge
  private let challenge = [UInt8](0..<32)

  init() throws {
    reader = try TestPCSC()
    badge = try TestBadge()
  }

  private func driver(beside other: OtherCardProgram? = nil) throws -> PluginDriver {
    let socket = other?.socket ?? reader.socket
    var configuration = PluginConfiguration(
      authenticator: "badge",
      program: .command([
        "/usr/bin/env", "PCSCLITE_CSOCK_NAME=\(socket)", try BuiltProgram.path("reader-badge"),
      ]))
    configuration.timeLimit = .seconds(60)
    // It ends by itself; the machine may be busy.
    return PluginDriver(configuration, patience: PluginPatience(afterAnswer: .seconds(30), beforeKill: .seconds(30)))
  }

  private func call(_ step: DriverCall.Step, _ registration: [UInt8] = []) -> DriverCall {
    DriverCall(
      step: step, server: "h", account: "alice", authenticator: "badge", challenge: challenge,
      registration: registration)
  }

  /// One use: at each hint the test acts.
  private func use(
    _ step: DriverCall.Step, _ registration: [UInt8] = [], beside other: OtherCardProgram? = nil,
    at hint: (DriverEvent) async throws -> Void
  ) async throws -> [DriverEvent] {
    var all: [DriverEvent] = []
    for await event in try driver(beside: other).events(for: call(step, registration)) {
      all.append(event)
      if !event.isAnswer { try await hint(event) }
    }
    return all
  }

  private struct Proof: Decodable {
    let publicKey: Data?
    let signature: Data

    enum CodingKeys: String, CodingKey {
      case signature
      case publicKey = "public_key"
    }
  }

  private func proof(_ event: DriverEvent?) throws -> (proof: Proof, registration: [UInt8]) {
    guard case .data(let data) = event else { throw NoDataError(event: event) }
    let proof = try data.bytes.withExposedSecret { try JSONDecoder().decode(Proof.self, from: Data($0)) }
    return (proof, data.registration)
  }

  private struct NoDataError: Error {
    let event: DriverEvent?
  }

  private var point: [UInt8] { [4] + badge.key.publicKey.x + badge.key.publicKey.y }

  @Test("It registers the key of the certificate, and signs later challenges with it") func registration() async throws
  {
    let (reader, badge) = (reader, badge)
    let events = try await use(.register) { _ in badge.insert(into: reader) }
    #expect(events.first == .waiting("present the badge"))
    let (proof, registration) = try proof(events.last)
    #expect(proof.publicKey.map(Array.init) == point && registration == point)
    #expect(badge.key.publicKey.isValidDERSignature(Array(proof.signature), overDigest: challenge))

    // The badge is still there: what counts is an insertion after the question.
    var isRemoved = false
    let later = try await use(.authenticate, registration) { hint in
      guard hint == .waiting("remove the badge, then present it again") else { return }
      isRemoved = true
      badge.remove()
      try await reader.untilEmpty()
      badge.insert(into: reader)
    }
    let second = try self.proof(later.last).proof
    #expect(isRemoved && second.publicKey == nil)
    #expect(badge.key.publicKey.isValidDERSignature(Array(second.signature), overDigest: challenge))
  }

  @Test(
    "A card that lies, is pulled out or hangs gives no data, and the right one can follow",
    arguments: [
      (.signsWithAnotherKey, "this badge is not the registered one"), (.isNoPIVCard, "this card is not a PIV badge"),
      (.endsEarly, "the badge answers in a form that is not known"), (.neverEnds, "the badge does not sign"),
      (.refuses, "the badge does not sign"), (.isPulledOut, nil),
    ] as [(TestBadge.Behavior, String?)])
  func wrong(behavior: TestBadge.Behavior, reason: String?) async throws {
    let (reader, badge) = (reader, badge)
    let wrong = try TestBadge(behavior, key: badge.key)
    let events = try await use(.authenticate, point) { hint in
      if case .retry = hint {
        wrong.remove()
        try await reader.untilEmpty()
        badge.insert(into: reader)
      } else {
        wrong.insert(into: reader)
      }
    }
    #expect(events.count == 3)
    if let reason { #expect(events.dropFirst().first == .retry(reason)) }
    _ = try proof(events.last)
  }

  @Test("Another program's resets cost no try, and it is not disturbed at the end of the use") func besideAnother()
    async throws
  {
    let (reader, badge) = (reader, badge)
    let other = try OtherCardProgram(at: reader, resets: 2)
    let events = try await use(.authenticate, point, beside: other) { _ in badge.insert(into: reader) }
    #expect(events.dropLast() == [.waiting("present the badge")])
    _ = try proof(events.last)
    #expect(other.lines(3) == ["reset", "reset", "used"])
  }

  @Test("A card that another program uses for longer than a card may take to answer is waited for")
  func whileAnotherUsesIt() async throws {
    let (reader, badge) = (reader, badge)
    let other = try OtherCardProgram(at: reader, resets: 0, holds: 4)
    let events = try await use(.authenticate, point, beside: other) { _ in badge.insert(into: reader) }
    #expect(events.dropLast() == [.waiting("present the badge")])
    _ = try proof(events.last)
    #expect(other.lines(2) == ["held", "used"])
  }

  @Test("A card that never answers ends the program after 2 s") func hangs() async throws {
    let reader = reader
    let wrong = try TestBadge(.hangs, key: badge.key)
    var time = Duration.seconds(60)
    // One of three times is enough, on a busy machine.
    for _ in 1...3 where time >= .seconds(15) {
      let began = ContinuousClock.now
      let events = try await use(.authenticate, point) { hint in
        if case .waiting = hint { wrong.insert(into: reader) }
      }
      time = ContinuousClock.now - began
      #expect(events.suffix(2) == [.retry("the badge does not answer"), .failed("it ended without an answer")])
      wrong.remove()
      try await reader.untilEmpty()
    }
    #expect(time < .seconds(15))
  }

  @Test(
    "A badge that cannot be registered cancels",
    arguments: [
      (.hasCompressedCertificate, "the certificate of the badge is compressed, which is not supported")
    ] as [(TestBadge.Behavior, String)])
  func notRegistrable(behavior: TestBadge.Behavior, reason: String) async throws {
    let reader = reader
    let wrong = try TestBadge(behavior)
    #expect(try await use(.register) { _ in wrong.insert(into: reader) }.last == .canceled(reason))
    wrong.remove()
  }

  @Test("Of two cards none is used") func twoCards() async throws {
    let (reader, badge) = (reader, badge)
    let other = try TestBadge()
    other.insert(into: reader, slot: 1)
    try await other.untilCounted()
    let events = try await use(.authenticate, point) { hint in
      if case .retry = hint {
        other.remove()
        badge.remove()
        try await reader.untilEmpty(slot: 1)
        try await reader.untilEmpty()
        badge.insert(into: reader)
      } else {
        badge.insert(into: reader)
      }
    }
    #expect(events.dropFirst().first == .retry("there is more than one card: present only the badge"))
    _ = try proof(events.last)
  }

  @Test("A pcscd that is started again meanwhile is used") func restart() async throws {
    let (reader, badge) = (reader, badge)
    let events = try await use(.authenticate, point) { _ in
      reader.stop()
      try? reader.start()
      try await reader.untilListed()
      badge.insert(into: reader)
    }
    _ = try proof(events.last)
  }

  /// Fails if what is in a reader that was unplugged meanwhile is asked: its user has not presented it.
  @Test(
    "A card in a reader that was replaced, or that is listed again, does not count as presented",
    arguments: ["Another PCD", "Virtual PCD"])
  func listedAgain(name: String) async throws {
    let (reader, badge) = (reader, badge)
    let lying = try TestBadge(.signsWithAnotherKey, key: badge.key)
    var stopped = 0
    let events = try await use(.authenticate, point) { _ in
      stopped =
        (try? await withStoppedChildren(of: "reader-badge", with: reader.socket) {
          reader.stop()
          try reader.start(withReader: name)
          lying.insert(into: reader)
          try await lying.untilCounted()
        }) ?? 0
      try await reader.untilListed()
      #expect(lying.commands == 0)
      lying.remove()
      try await reader.untilEmpty()
      badge.insert(into: reader)
    }
    #expect(stopped == 1 && events.count == 2 && lying.commands == 0)
    _ = try proof(events.last)
  }

  @Test("A use that is no longer wanted ends, and a deregistration needs no badge") func ends() async throws {
    for await event in try driver().events(for: call(.authenticate, point)) {
      #expect(event == .waiting("present the badge"))
      break
    }
    let (reader, badge) = (reader, badge)
    #expect(try await use(.deregister) { _ in }.count == 1)
    #expect(try await use(.authenticate, []) { _ in } == [.canceled("the badge must be registered again")])
    _ = try proof(try await use(.authenticate, point) { _ in badge.insert(into: reader) }.last)
  }
}
