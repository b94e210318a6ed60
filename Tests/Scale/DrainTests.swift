// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import ProgramHarness
import ServerTestSupport
import Testing

/// Servers that are stopped and started again one after the other, as for an update.
@Suite(.timeLimit(.minutes(10)), .serialized) struct DrainTests {
  @Test("While servers are stopped one by one no request fails, and streams end one after the other")
  func drain() async throws {
    let scene = try await DrainScene()
    for index in 0..<2 { try await scene.replace(index) }
    try await scene.end()
  }
}

/// The same with servers of each earlier version that has PostgreSQL, which are replaced by the present one.
/// `scripts/test compatibility` builds the earlier programs; other runs skip this.
@Suite(.timeLimit(.minutes(10)), .serialized) struct UpdateTests {
  static let earlier = ProgramVersion.earlier.filter { version in
    (try? BuiltPrograms.run(version.server, ["init", "--help"]))?.text.contains("--database") == true
  }

  @Test(
    "While earlier servers are replaced one by one, both versions serve one database and no request fails",
    arguments: earlier)
  func update(from version: ProgramVersion) async throws {
    let scene = try await DrainScene(executable: version.server)
    try await scene.replace(0, with: ProgramVersion.present.server)
    // The balancer sends new requests to the present server, as the earlier one has all streams.
    try await scene.expectHints()
    try await scene.replace(1, with: ProgramVersion.present.server)
    try await scene.end()
    print("ran: servers of \(version.name) replaced one by one on one database")
  }
}
