// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import FreePorts
import Synchronization

/// Several servers on one PostgreSQL database, behind HAProxy.
package final class ServerGroup: Sendable {
  private struct Member {
    var executable: String
    var program: RunningProgram
    let directory: String
    let port: Int
    /// Of its health checks and metrics.
    let operations: Int
  }

  /// Of the balancer.
  package let url: String
  let first: RunningProgram
  private let members: Mutex<[Member]>
  private let balancer: TestBalancer

  /// - Parameters:
  ///   - directory: that of the first server; the others have copies of it.
  ///   - port: of the balancer.
  ///   - executable: the path of `token-server`.
  init(of count: Int, in directory: String, port: Int, _ executable: String) throws {
    let url = "https://127.0.0.1:\(port)"
    try Self.edit(directory + "/config.toml") { text in
      let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
      let own = ["issuer = \"\(url)\"", "proxy_protocol_from = [\"127.0.0.1\"]"]
      return (own + lines.filter { line in !["issuer =", "proxy_protocol_from ="].contains { line.hasPrefix($0) } })
        .joined(separator: "\n")
    }
    let ports = try (0..<count).map { _ in (port: try FreePort.reserve(), operations: try FreePort.reserve()) }
    var members: [Member] = []
    for (port, operations) in ports {
      var own = directory
      if !members.isEmpty {
        own = try ServerDirectories.copy(of: directory, sharing: true)
        // Tests put scripts into the first directory.
        try Self.edit(own + "/config.toml") {
          $0.replacingOccurrences(of: "scripts = \"", with: "scripts = \"\(directory)/")
        }
      }
      try Self.edit(own + "/config.toml") { Self.configuration($0, withOperationsOn: operations) }
      let program = try Self.serve(own, port: port, executable).0
      members.append(
        Member(executable: executable, program: program, directory: own, port: port, operations: operations))
    }
    self.url = url
    first = members[0].program
    self.members = Mutex(members)
    balancer = try TestBalancer(port: port, servers: ports)
  }

  /// Sets the port of health checks; without a table `[operations]` the server does not drain.
  private static func configuration(_ text: String, withOperationsOn port: Int) -> String {
    let mark = "  # of the group"
    var lines = text.components(separatedBy: "\n").filter { !$0.hasSuffix(mark) }
    if !lines.contains("[operations]") { lines += ["[operations]" + mark, "drain_seconds = 0" + mark] }
    let table = lines.lastIndex { $0.hasPrefix("[operations]") } ?? 0
    lines.insert("port = \(port)" + mark, at: table + 1)
    return lines.joined(separator: "\n") + "\n"
  }

  /// Starts a server.
  /// - Returns: the process, and the issuer that it prints.
  static func serve(_ directory: String, port: Int, _ executable: String) throws -> (RunningProgram, String) {
    let log = directory + "/log"
    let program = try RunningProgram(
      executable, ["serve", "--directory", directory, "--port", String(port)], errors: log)
    guard let line = program.nextLine(), line.hasPrefix("listening on ") else {
      let complaint = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
      throw Curl.CurlError(description: "serve did not start: \(complaint)")
    }
    return (program, String(line.dropFirst("listening on ".count)))
  }

  /// Kills a server, and starts it again.
  /// - Parameter index: from 0; not by two callers for the same server.
  package func restart(_ index: Int) throws {
    killServer(index)
    try startServer(index)
  }

  /// - Parameter index: as for `restart`.
  package func killServer(_ index: Int) {
    let program = members.withLock { $0[index].program }
    program.send(SIGKILL)
    program.waitForEnd()
  }

  /// - Parameters:
  ///   - index: as for `restart`; of a server that has ended.
  ///   - executable: the path of another version of `token-server`; nil for the same as before.
  package func startServer(_ index: Int, with executable: String? = nil) throws {
    var member = members.withLock { $0[index] }
    member.executable = executable ?? member.executable
    member.program = try Self.serve(member.directory, port: member.port, member.executable).0
    members.withLock { [member] in $0[index] = member }
  }

  /// Ends a server as an operator does, and waits for its end.
  /// - Parameter index: as for `restart`.
  /// - Returns: the exit status.
  package func drainServer(_ index: Int) -> Int32 {
    let program = members.withLock { $0[index].program }
    program.send(SIGTERM)
    return program.waitForEnd()
  }

  /// The log of each server since its start.
  package var logs: [String] {
    members.withLock { $0.map(\.directory) }.map { (try? String(contentsOfFile: $0 + "/log", encoding: .utf8)) ?? "" }
  }

  /// - Returns: the largest exit status.
  func stop(killing: Bool) -> Int32 {
    let all = members.withLock { $0 }
    for member in all { member.program.send(killing ? SIGKILL : SIGTERM) }
    balancer.stop()
    return all.map { $0.program.waitForEnd() }.max() ?? 0
  }

  deinit {
    for member in members.withLock({ $0 }).dropFirst() { try? FileManager.default.removeItem(atPath: member.directory) }
  }

  private static func edit(_ file: String, _ change: (String) -> String) throws {
    try change(String(contentsOfFile: file, encoding: .utf8)).write(toFile: file, atomically: true, encoding: .utf8)
  }
}
