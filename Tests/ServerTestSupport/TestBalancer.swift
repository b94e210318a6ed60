// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import Glibc

/// Debian's HAProxy before several servers, with `examples/haproxy.cfg`. Only addresses are replaced in it, and the
/// time limit of a check, which a busy machine would exceed: a server that does not answer ends the check itself.
final class TestBalancer: Sendable {
  private let program: RunningProgram
  private let directory: String

  /// - Parameters:
  ///   - port: where it listens, on 127.0.0.1.
  ///   - servers: the ports of each server and of its health checks.
  init(port: Int, servers: [(port: Int, operations: Int)]) throws {
    directory = NSTemporaryDirectory() + "balancer-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
    try Self.configuration(port: port, servers: servers)
      .write(toFile: directory + "/haproxy.cfg", atomically: true, encoding: .utf8)
    program = try RunningProgram("/usr/sbin/haproxy", ["-db", "-f", directory + "/haproxy.cfg"])
    let deadline = ContinuousClock.now + .seconds(60)
    while !accepts(port) {
      guard ContinuousClock.now < deadline else {
        throw Curl.CurlError(description: "HAProxy does not listen within 60 s")
      }
      usleep(5000)
    }
  }

  private static func configuration(port: Int, servers: [(port: Int, operations: Int)]) throws -> String {
    let example = URL(filePath: #filePath).appending(path: "../../../examples/haproxy.cfg").standardized
    var lines = try String(contentsOf: example, encoding: .utf8).components(separatedBy: "\n")
    guard let bind = lines.firstIndex(of: "  bind :8443"), let check = lines.firstIndex(of: "  timeout check 5s"),
      let first = lines.firstIndex(where: { $0.hasPrefix("  server one ") }),
      lines[first + 1].hasPrefix("  server two ")
    else { throw Curl.CurlError(description: "examples/haproxy.cfg has not the lines that tests replace") }
    let template = lines[first]
    lines[bind] = "  bind 127.0.0.1:\(port)"
    lines[check] = "  timeout check 60s"
    lines[first...(first + 1)] = ArraySlice(
      servers.enumerated().map { index, server in
        template.replacingOccurrences(of: "server one", with: "server s\(index)")
          .replacingOccurrences(
            of: "10.0.0.1:8443 port 9464", with: "127.0.0.1:\(server.port) port \(server.operations)")
      })
    return lines.joined(separator: "\n")
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
