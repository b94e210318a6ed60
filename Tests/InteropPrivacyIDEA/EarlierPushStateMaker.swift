// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

/// Makes `COMMIT-push.tar.xz` beside the state of the other accounts: a vault with push tokens of privacyIDEA.
/// `scripts/compatibility state COMMIT` runs this; other runs skip it.
@Suite(.timeLimit(.minutes(10))) struct EarlierPushStateMaker {
  static let destination = ProcessInfo.processInfo.environment["EARLIER_STATE"]

  @Test(
    "State of push tokens is made", .enabled(if: EarlierPushStateMaker.destination != nil),
    arguments: ProgramVersion.earlier)
  func state(version: ProgramVersion) async throws {
    let server = try PushServer.shared.get()
    let folder = try TemporaryDirectory()
    defer { folder.remove() }
    let config = """
      [tls]
      authorities = "\(server.authority)"
      [push]
      fast_ms = 300
      idle_s = 2
      key_bits = 2048
      """
    let token = VersionedToken(
      program: version.token, state: folder.file("token"),
      board: try folder.write(QuickBoard.withKeypad, to: "board.toml"),
      config: try folder.write(config, to: "token.toml"))
    defer { token.end() }
    try await token.start()
    let (serial, url) = try server.makeToken()
    try await token.enroll(url, "--name", "desk")
    try await token.enroll(try server.makeToken().url, "--name", "typed", "--ask-pin", choosing: "135792")
    let login = try server.trigger(serial).transaction
    try await token.hold()
    try await token.shows("idle, connected")
    #expect(try server.challengeStatus(login) == "accept")
    try await token.stop()
    let file = "\(try #require(Self.destination))/\(version.name)-push.tar.xz"
    try await run(
      "tar",
      ["-cJf", file, "-C", folder.path, "--exclude=lock", "--exclude=*.sock", "--owner=0", "--group=0"]
        + ["board.toml", "token"]
    ).succeeded()
  }
}
