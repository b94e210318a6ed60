// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Cryptography
import Foundation
import RecordedLog
import ReferenceProtocol
import ServerTestSupport
import Testing

@testable import ReferenceServer
@testable import TokenServerCore
@testable import TokenServerHTTP
@testable import TokenServerStore

/// Concurrent guesses of activation codes.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ActivationGuessTests {
  @Test("Of 300 concurrent guesses from one address, only the 10 allowed wrong ones are checked")
  func parallelGuesses() async throws {
    let temporary = try TemporaryStore()
    let log = RecordedLog()
    let activation = temporary.makeActivationService(log: log.logger)
    let outcomes = await guesses(300, at: activation) { _ in "192.0.2.1" }
    #expect(outcomes["invalid_token"] == 10)
    #expect(outcomes["slow_down"] == 290)
    // The total limit has lost only these 10: 59 other addresses may still have 10 wrong guesses each.
    let others = await guesses(590, at: activation) { "198.51.100.\($0 % 59)" }
    #expect(others["invalid_token"] == 590)
    let last = await guesses(1, at: activation) { _ in "203.0.113.1" }
    #expect(last == ["slow_down": 1])
    // The last one says that the next ones are dropped.
    #expect(log.all.count == DeviceLog.hourly + 1)
    #expect(log.all.last?.contains("wrong codes of boards that are not registered") == true)
  }

  @Test("The networks of one IPv6 site share a limit")
  func site() async throws {
    let temporary = try TemporaryStore()
    let activation = temporary.makeActivationService()
    let outcomes = await guesses(700, at: activation) { ConnectionSource.name(of: "2001:db8:1:\($0 % 70)::1") }
    #expect(outcomes["invalid_token"] == 60)
    let others = await guesses(10, at: activation) { _ in ConnectionSource.name(of: "2001:db8:2::1") }
    #expect(others["invalid_token"] == 10)
  }

  @Test("Correct codes do not use up the limit")
  func rightCodes() async throws {
    let temporary = try TemporaryStore()
    let activation = temporary.makeActivationService()
    let key = try P256PrivateKey().publicKey
    let code = ActivationCode.random()
    let hash = temporary.hasher.hash(code.digits, for: .activationCode)
    try await temporary.store.write { database in
      try database.run("INSERT INTO user (id, created_at_ms) VALUES ('alice', 0)")
      try database.insertActivationCode(hash, userID: UserID("alice"), expiresAt: Timestamp(1_000_000))
    }
    for _ in 1...30 {
      _ = try await activation.register(.sample(key), key: key, credential: code.digits, peer: "192.0.2.1")
    }
  }

  /// Fails if each attempt may count the devices of the fleet again.
  @Test("Attempts with the token of a full fleet are limited per source, like wrong codes, but not in total")
  func fullFleet() async throws {
    let temporary = try TemporaryStore()
    let activation = temporary.makeActivationService()
    let hash = temporary.hasher.hash("fleet", for: .fleetToken)
    try await temporary.store.write { _ = try $0.insertFleetToken(hash, name: "fleet", now: Timestamp(0)) }
    let key = try P256PrivateKey().publicKey
    _ = try await activation.register(.sample(key), key: key, credential: "fleet", peer: "192.0.2.2")
    let devices = await guesses(9, with: "fleet", at: activation) { _ in "192.0.2.1" }
    #expect(devices == ["registered": 9])
    let first = await guesses(1, with: "fleet", at: activation) { _ in "192.0.2.1" }
    #expect(first == ["access_denied": 1])
    let later = await guesses(299, with: "fleet", at: activation) { _ in "192.0.2.1" }
    #expect(later == ["access_denied": 9, "slow_down": 290])
    // A device that is registered finds itself as often as it asks.
    for _ in 1...30 {
      _ = try await activation.register(.sample(key), key: key, credential: "fleet", peer: "192.0.2.2")
    }
    let codes = await guesses(600, at: activation) { $0 < 10 ? "192.0.2.1" : "198.51.100.\($0 % 59)" }
    #expect(codes == ["invalid_token": 600])
  }

  /// Fails if a fleet that was full once counts as full.
  @Test("A fleet that has room again has no limit per source")
  func roomAgain() async throws {
    let temporary = try TemporaryStore()
    let activation = temporary.makeActivationService()
    let hash = temporary.hasher.hash("fleet", for: .fleetToken)
    try await temporary.store.write { _ = try $0.insertFleetToken(hash, name: "fleet", now: Timestamp(0)) }
    let key = try P256PrivateKey().publicKey
    let device = try await activation.register(.sample(key), key: key, credential: "fleet", peer: "192.0.2.2")
    let full = await guesses(30, with: "fleet", at: activation) { "192.0.2.\(3 + $0 / 10)" }
    #expect(full["registered"] == 9)
    let limited = await guesses(20, with: "fleet", at: activation) { _ in "192.0.2.1" }
    #expect(limited["slow_down"] == 10)
    try await temporary.store.write { _ = try $0.deleteDevice(device, now: Timestamp(0)) }
    let next = await guesses(1, with: "fleet", at: activation) { _ in "192.0.2.2" }
    #expect(next == ["registered": 1])
    let unlimited = await guesses(1, with: "fleet", at: activation) { _ in "192.0.2.1" }
    #expect(unlimited == ["access_denied": 1])
  }

  @Test("The codes of a fleet cannot be guessed while they are valid") func fleetCodes() {
    let guesses = ActivationService.wrongCodesPerMinute * 60 * 24 * Double(FleetCommand.maximumDays)
    let codes = pow(10, Double(ActivationCode.Form.long.rawValue - 1))
    #expect(guesses * Double(FleetList.maximum) / codes < 1e-6)
  }

  /// - Parameter token: in place of random codes.
  /// - Returns: the number of responses per error.
  private func guesses(
    _ count: Int, with token: String? = nil, at activation: ActivationService,
    from address: @escaping @Sendable (Int) -> String
  ) async -> [String: Int] {
    await withTaskGroup(of: String.self) { group in
      for number in 0..<count {
        group.addTask {
          do {
            let key = try P256PrivateKey().publicKey
            let guess = token ?? ActivationCode.random().digits
            _ = try await activation.register(.sample(key), key: key, credential: guess, peer: address(number))
            return "registered"
          } catch { return (error as? ResponseError)?.body.error ?? "\(error)" }
        }
      }
      return await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }
  }
}

extension RegistrationRequest {
  fileprivate static func sample(_ key: P256PublicKey) -> RegistrationRequest {
    RegistrationRequest(
      clientName: "n", softwareID: "s", softwareVersion: "1", key: JWK(key),
      capabilities: .init(display: .none, keypad: false, button: true, led: .mono))
  }
}
