// SPDX-License-Identifier: Apache-2.0
import Foundation

/// HAProxy before several servers: passes TLS through, as in examples/haproxy.cfg.
enum LoadBalancer {
  static func start(on stage: Stage, named name: String, port: UInt16, before servers: [UInt16]) throws -> Child {
    let lines =
      [
        "defaults", "  mode tcp", "  timeout connect 2s", "  timeout client 1h", "  timeout server 1h",
        "listen token-server", "  bind \(Loopback.address):\(port)", "  balance leastconn",
      ] + servers.map { "  server s\($0) \(Loopback.address):\($0) send-proxy-v2" }
    let file = "\(stage.directory)/\(name).haproxy"
    try (lines.joined(separator: "\n") + "\n").write(toFile: file, atomically: true, encoding: .utf8)
    let child = try Child("/usr/sbin/haproxy", ["-db", "-f", file], log: file + ".log")
    let deadline = Instant.now + 10
    while !Loopback.accepts(port) {
      guard Instant.now < deadline else { throw BenchError("HAProxy did not start, see \(file).log") }
      pause(seconds: 0.02)
    }
    return child
  }
}
