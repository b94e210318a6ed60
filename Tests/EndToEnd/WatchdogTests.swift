// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import BuiltPrograms
import Foundation
import Glibc
import ProgramHarness
import Testing

extension EndToEnd {
  @Suite struct Watchdogs {
    /// The socket of a service manager. It forgets its messages when they are read.
    private final class ManagerSocket: Sendable {
      let path = "/tmp/approval-token-notify-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
      private let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue), 0)

      init() throws {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let bound = withUnsafePointer(to: address) {
          $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
          }
        }
        try #require(bound == 0)
      }

      deinit {
        close(descriptor)
        unlink(path)
      }

      /// The oldest message that was not read; nil if there is none.
      func next() -> String? {
        var message = [UInt8](repeating: 0, count: 100)
        let count = recv(descriptor, &message, message.count, 0)
        return count < 0 ? nil : String(decoding: message.prefix(count), as: UTF8.self)
      }

      func receives(_ message: String) async throws {
        _ = try await eventually("the message \(message)") { next() == message ? true : nil }
      }
    }

    private static func isStopped(_ process: Int32) throws -> Bool {
      let tasks = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")
      return tasks.allSatisfy { task in
        // A thread may have ended since.
        guard let status = try? wholeText(of: "/proc/\(process)/task/\(task)/status") else { return true }
        return status.contains("\nState:\tT")
      }
    }

    @Test("A running service reports to the watchdog of the service manager, a stopped process does not")
    func stoppedProcessIsSilent() async throws {
      let manager = try ManagerSocket()
      let launcher = ["/usr/bin/env", "NOTIFY_SOCKET=\(manager.path)", "WATCHDOG_USEC=1000000"]
      try await withScene(launcher: launcher) { fixture in
        for message in ["READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"] { try await manager.receives(message) }
        let process = try fixture.token.running
        process.send(SIGSTOP)
        _ = try await eventually("the stop of all threads") { try Self.isStopped(process.processID) ? true : nil }
        // What was sent before.
        while manager.next() != nil {}
        try await Task.sleep(for: .seconds(2))
        #expect(manager.next() == nil)
        process.send(SIGCONT)
        try await manager.receives("WATCHDOG=1")
        // While a request is shown, too.
        _ = try await fixture.ask()
        try await fixture.token.asks("confirmation wanted")
        while manager.next() != nil {}
        for _ in 1...3 { try await manager.receives("WATCHDOG=1") }
      }
    }
  }
}
