// SPDX-License-Identifier: Apache-2.0

/// The same load on one server with SQLite, and on one, two and four servers on PostgreSQL, all on this machine.
enum ScaleRows {
  static func measure(on stage: Stage) throws -> [Row] {
    let alone = try row("1 server, SQLite", TokenServer(on: stage, named: "sqlite"))
    let cluster = try Cluster()
    defer { cluster.end() }
    return try alone
      + [1, 2, 4].flatMap { count in
        let server = try TokenServer(
          on: stage, named: "postgresql\(count)", database: cluster.newDatabase("bench\(count)"), servers: count)
        return try row(
          count == 1 ? "1 server, PostgreSQL" : "\(count) servers, PostgreSQL, behind HAProxy", server)
      }
  }

  private static func row(_ name: String, _ server: TokenServer) throws -> [Row] {
    defer { server.end() }
    let load = try TransactionRows.saturation(of: server)
    return [
      Row(name, "\(load.perSecond.text(0)) answered per second; \(load.latency)"),
      Row("  processor for each", load.each),
    ]
  }
}
