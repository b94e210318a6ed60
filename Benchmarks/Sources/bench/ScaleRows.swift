// SPDX-License-Identifier: Apache-2.0

/// The same load on one server with SQLite, and on one, two and four servers on PostgreSQL, all on this machine; the
/// event streams of one server with either, and logins at a privacyIDEA.
enum ScaleRows {
  static func measure(on stage: Stage) throws -> [Row] {
    let alone = try rows("1 server, SQLite", TokenServer(on: stage, named: "sqlite"))
    let cluster = try Cluster()
    defer { cluster.end() }
    return try alone
      + [1, 2, 4].flatMap { count in
        let server = try TokenServer(
          on: stage, named: "postgresql\(count)", database: cluster.newDatabase("bench\(count)"), servers: count)
        return try rows(
          count == 1 ? "1 server, PostgreSQL" : "\(count) servers, PostgreSQL, behind HAProxy", server)
      } + StreamRows.measure(on: stage) + StreamRows.measure(on: stage, database: cluster.newDatabase("streams"))
      + PrivacyIDEARows.measure(on: stage)
  }

  private static func rows(_ name: String, _ server: TokenServer) throws -> [Row] {
    defer { server.end() }
    let (saturation, below) = try TransactionRows.saturation(of: server)
    return [
      Row(name, "\(saturation.perSecond.text(0)) answered per second; \(saturation.latency)"),
      Row("  limited by", saturation.limit), saturation.each,
      Row(
        "  70 % of that rate", "\(below.perSecond.text(0)) answered per second; \(below.latency)", goal: "p99 < 100 ms",
        met: below.unanswered == 0 && below.p99 < 0.1),
      Row("  memory of each server", saturation.memory), Row("  database for each", saturation.growth),
    ]
  }
}
