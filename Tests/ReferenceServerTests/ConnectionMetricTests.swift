// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import ServerTestSupport
import Testing

@Suite("Metrics of connections", .timeLimit(.minutes(5)), .mayBlock) struct ConnectionMetricTests {
  @Test("A connection beyond the limit of its source is refused and counted") func refusals() async throws {
    let server = try TokenServerProcess(
      configuration: "[limits]\nconnections_per_source = 2\n[operations]\nport = 0", servers: 1)
    let address = try OperationsTests.address(of: server)
    func refused(_ limit: String) throws -> String? {
      let text = try server.curl(address + "/metrics").expect(200).text
      let name = "token_server_connections_refused_total{limit=\"\(limit)\"} "
      return text.split(separator: "\n").first { $0.hasPrefix(name) }.map { String($0.dropFirst(name.count)) }
    }
    // `increase()` needs the value before the first refusal.
    #expect(try refused("source") == "0" && refused("all") == "0")
    let connections = try (1...3).map { _ in try connect(to: server.port, from: "127.0.0.9") }
    defer { for connection in connections { close(connection) } }
    try await eventually("one refusal") { try refused("source") == "1" }
    #expect(try refused("all") == "0")
  }
}
