// SPDX-License-Identifier: Apache-2.0
/// From fork to "ready" of an enrolled token.
struct StartRow {
  static let times = 20

  static func measure(on stage: Stage) throws -> [Row] {
    let server = try TokenServer(on: stage, named: "start-server")
    defer { server.end() }
    let state = "\(stage.directory)/start"
    _ = try stage.run("approval-token", ["enroll", server.add(user: "start").uri, "--state", state])
    let times = try (0..<times).map { _ in
      let token = try stage.start("approval-tokend", ["serve", "--state", state])
      guard try token.readLine() == "ready" else { throw BenchError("approval-tokend is not ready") }
      return Instant.now - token.started
    }
    let sample = Sample(times)
    return [Row("token: start to ready", sample.inMilliseconds, goal: "≤ 30 ms", met: sample.median <= 0.030)]
  }
}
