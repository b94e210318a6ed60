// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import BuiltPrograms
import Cryptography
import Foundation
import MobileAuth
import Secrets
import TestSecurityKey
import Testing

@testable import AuthenticatorPlugins

/// The program `reader-key` with libfido2, over a simulated security key.
@Suite("The plug-in for security keys", .timeLimit(.minutes(5))) final class ReaderKeyTests {
  private let key: TestSecurityKey
  private let driver: PluginDriver
  private let challenge = [UInt8](0..<32)

  init() throws {
    let path = "/tmp/reader-key-\(UUID().uuidString.prefix(8))"
    key = try TestSecurityKey(at: path)
    driver = try Self.driver(at: path)
  }

  deinit { key.stop() }

  private static func driver(at path: String, limit: Duration = .seconds(60)) throws -> PluginDriver {
    var configuration = PluginConfiguration(
      authenticator: "key", program: .command([try BuiltProgram.path("reader-key-probe"), path]))
    configuration.timeLimit = limit
    return PluginDriver(configuration, patience: .long)
  }

  private func call(_ step: DriverCall.Step, _ registration: [UInt8] = []) -> DriverCall {
    DriverCall(
      step: step, server: "auth.example.org", account: "al\"ice\\", authenticator: "key", challenge: challenge,
      registration: registration)
  }

  private func registered() async throws -> AuthenticatorData {
    let events = await driver.all(of: call(.register))
    #expect(events.dropLast() == [.waiting("touch the security key"), .waiting("touch the security key")])
    guard case .data(let data) = events.last else { throw NoDataError(events: events) }
    return data
  }

  @Test("It registers with two touches, and signs the challenge of the next use with the same key") func registration()
    async throws
  {
    key.set(.touched(after: .milliseconds(150)))
    let data = try await registered()
    let proof = try data.keyProof()
    let point = [4] + key.key.publicKey.x + key.key.publicKey.y
    #expect(proof.publicKey.map(Array.init) == point)
    #expect(key.key.publicKey.isValidDERSignature(Array(proof.signature), for: proof.authenticatorData + challenge))
    #expect(proof.authenticatorData.prefix(32) == Data(SHA256.hash(Array("auth.example.org".utf8))))
    #expect(data.registration.prefix(64) == point.dropFirst())

    let events = await driver.all(of: call(.authenticate, data.registration))
    guard case .data(let answer) = events.last else { throw NoDataError(events: events) }
    let second = try answer.keyProof()
    #expect(second.publicKey == nil && second.authenticatorData != proof.authenticatorData)
    #expect(key.key.publicKey.isValidDERSignature(Array(second.signature), for: second.authenticatorData + challenge))
    #expect(key.calls == [1, 2, 2])
  }

  @Test(
    "A key that lies, or is not touched, gives no data",
    arguments: [
      .signsWithAnotherKey, .isNotTouched, .signsForAnotherServer, .isRemoved, .refuses(0x27), .refuses(0x2E),
      .refuses(0x3A),
    ]
      as [TestSecurityKey.Behavior])
  func noData(behavior: TestSecurityKey.Behavior) async throws {
    let registration = try await registered().registration
    key.set(behavior)
    // On a busy machine the first try may not have ended at the time limit.
    for limit in [2500, 10_000, 40_000] {
      let limited = try Self.driver(at: key.path, limit: .milliseconds(limit))
      let events = await limited.all(of: call(.authenticate, registration))
      guard events.contains(where: { if case .retry = $0 { true } else { false } }) else { continue }
      // Its tries, one in a second, are limited to ten.
      let mayEnd = limit > 2500 && events.last == .failed("it ended without an answer")
      #expect(mayEnd || events.last == .failed("no answer within \(limit) ms"))
      return
    }
    Issue.record("no try has ended")
  }

  @Test(
    "What the key refuses for good cancels a registration",
    arguments: [
      (0x27, "refused at the security key"), (0x36, "the security key requires its own PIN"),
      (0x26, "the security key cannot sign with P-256"),
    ] as [(UInt8, String)])
  func refused(status: UInt8, reason: String) async throws {
    key.set(.refuses(status))
    #expect(await driver.all(of: call(.register)).last == .canceled(reason))
  }

  @Test("A key that was not touched in time, and answers with a denial, denies no request: a later touch signs")
  func touchedTooLate() async throws {
    let registration = try await registered().registration
    key.set(.givesUp(after: .milliseconds(150), with: 0x27))
    var events: [DriverEvent] = []
    for await event in driver.events(for: call(.authenticate, registration)) {
      events.append(event)
      if case .retry = event { key.set(.touched(after: .zero)) }
    }
    #expect(events.contains(.retry("the security key was not touched in time")))
    guard case .data = events.last else { throw NoDataError(events: events) }
  }

  /// A key that always verifies its user says so before it looks for the credential.
  @Test("Another key that requires its PIN, or cannot sign, denies no request", arguments: [0x36, 0x26] as [UInt8])
  func refusedBesideOthers(status: UInt8) async throws {
    let registration = try await registered().registration
    key.set(.refuses(status))
    for await event in driver.events(for: call(.authenticate, registration)) {
      #expect(!event.isAnswer, "\(event)")
      if case .retry = event { break }
    }
    key.set(.touched(after: .milliseconds(10)))
    let events = await driver.all(of: call(.authenticate, registration))
    guard case .data = events.last else { throw NoDataError(events: events) }
  }

  /// A key that went on blinking would sign what is no longer wanted.
  @Test("A touch that is no longer wanted is canceled at the key") func canceled() async throws {
    let registration = try await registered().registration
    key.set(.untouched)
    for await event in driver.events(for: call(.authenticate, registration)) {
      #expect(event == .waiting("touch the security key"))
      // Otherwise the use may end before the key is asked.
      try await eventually("the key is asked") { key.calls.count >= 3 }
      break
    }
    try await eventually("the touch is canceled") { key.canceled > 0 }
    #expect(key.calls == [1, 2, 2])
  }

  @Test("Without a key it waits for one; a key that is plugged in later signs") func pluggedInLater() async throws {
    let path = "/tmp/reader-key-\(UUID().uuidString.prefix(8))"
    let driver = try Self.driver(at: path)
    var later: TestSecurityKey?
    var events: [DriverEvent] = []
    for await event in driver.events(for: call(.register)) {
      events.append(event)
      if event == .waiting("plug in the security key") { later = try TestSecurityKey(at: path) }
    }
    guard case .data = events.last else { throw NoDataError(events: events) }
    #expect(events.first == .waiting("plug in the security key"))
    later?.stop()
  }

  @Test("A deregistration needs no key, and a lost registration is canceled") func withoutKey() async throws {
    key.stop()
    let data = await driver.all(of: call(.deregister))
    #expect(data == [.data(AuthenticatorData(SecretBytes(copying: Array("{}".utf8))))])
    for size in [0, 64] {
      let events = await driver.all(of: call(.authenticate, [UInt8](repeating: 1, count: size)))
      #expect(events == [.canceled("the security key must be registered again")])
    }
  }
}

extension AuthenticatorDriver {
  fileprivate func all(of call: DriverCall) async -> [DriverEvent] {
    var all: [DriverEvent] = []
    for await event in events(for: call) { all.append(event) }
    return all
  }
}
