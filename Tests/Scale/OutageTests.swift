// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import Testing

/// Servers that are killed, and a database that is restarted or frozen, while users answer, with and without a PIN.
@Suite(.timeLimit(.minutes(15)), .serialized) struct OutageTests {
  /// `SCALE_DEVICES` and `SCALE_SECONDS` make it larger; `SCALE_SEED` repeats a run.
  private static let devices = environment("SCALE_DEVICES") ?? 12
  private static let seconds = environment("SCALE_SECONDS") ?? 30

  private static func environment(_ name: String) -> Int? {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
  }

  @Test(
    "No answer is lost after its receipt and none is changed, no PIN attempt is given back, and each callback arrives",
    arguments: [2, 4])
  func outages(servers: Int) async throws {
    let seed = ProcessInfo.processInfo.environment["SCALE_SEED"].flatMap { UInt64($0) } ?? .random(in: 0...UInt64.max)
    var random = SeededGenerator(seed: seed)
    print("outages of \(servers) servers: SCALE_SEED=\(seed)")
    let scene = try OutageScene(servers: servers)
    let users = try (0..<Self.devices).map { number in
      try OutageUser("user\(number)", in: scene, seed: random.next(), reachingLimit: number % 4 == 0)
    }
    let outages = try await scene.run(users, until: .now + .seconds(Self.seconds), seed: random.next())
    let entries = scene.record.entries.values
    let ends = entries.filter(\.isConfirmed).map(\.ending)
    let callbacks = scene.record.callbacks.values.reduce(0, +)
    print(
      """
      \(entries.count) requests, \(outages) outages; confirmed: \(ends.count { $0 == .accepted }) approvals, \
      \(ends.count { $0 == .denied }) denials, \(ends.count { $0 == .pinLimit }) limits; \
      \(entries.reduce(0) { $0 + $1.pinAttempts }) PINs, \(callbacks) callbacks so far
      """)
    #expect(ends.count { $0 == .accepted || $0 == .denied } > users.count, "\(scene.record.faults)")
    #expect(ends.contains(.pinLimit), "\(scene.record.faults)")
    for user in users { try user.judge() }
    try await scene.expectHints(for: users)
    try await scene.expectSingleCallbacks(for: users)
    try await scene.judge()
  }
}
