// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc

/// Debian's HAProxy before several servers, which passes TLS through.
final class TestBalancer: Sendable {
  private let program: RunningProgram
  private let directory: String

  /// - Parameters:
  ///   - port: where it listens, on 127.0.0.1.
  ///   - servers: the ports of the servers.
  init(port: Int, servers: [Int]) throws {
    directory = NSTemporaryDirectory() + "balancer-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
    let lines =
      [
        "defaults", "  mode tcp", "  timeout connect 2s", "  timeout client 90s", "  timeout server 90s",
        "  option redispatch", "  retries 3", "listen token-server", "  bind 127.0.0.1:\(port)",
        "  balance roundrobin",
      ]
      + servers.map { "  server s\($0) 127.0.0.1:\($0) send-proxy-v2 check check-send-proxy inter 200ms fall 1 rise 1" }
    try (lines.joined(separator: "\n") + "\n")
      .write(toFile: directory + "/haproxy.cfg", atomically: true, encoding: .utf8)
    program = try RunningProgram("/usr/sbin/haproxy", ["-db", "-f", directory + "/haproxy.cfg"])
    let deadline = ContinuousClock.now + .seconds(30)
    while !accepts(port) {
      guard ContinuousClock.now < deadline else { throw Curl.CurlError(description: "HAProxy did not start") }
      usleep(5000)
    }
  }

  func stop() { program.send(SIGKILL) }

  deinit {
    stop()
    try? FileManager.default.removeItem(atPath: directory)
  }
}

/// Whether a program on this machine accepts connections.
private func accepts(_ port: Int) -> Bool {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  defer { close(descriptor) }
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = UInt16(clamping: port).bigEndian
  address.sin_addr.s_addr = inet_addr("127.0.0.1")
  return withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
    }
  }
}

/// A port that was free a moment ago.
package func freePort() throws -> Int {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  defer { close(descriptor) }
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_addr.s_addr = inet_addr("127.0.0.1")
  var size = socklen_t(MemoryLayout<sockaddr_in>.size)
  let status = withUnsafeMutablePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      bind(descriptor, $0, size) | getsockname(descriptor, $0, &size)
    }
  }
  guard status == 0 else { throw Curl.CurlError(description: "no port is free") }
  return Int(UInt16(bigEndian: address.sin_port))
}
