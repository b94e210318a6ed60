// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import BuiltPrograms
import Foundation
import FreePorts
import Glibc
import Synchronization

/// A private pcscd with a virtual reader of two slots (vpcd), on a Unix socket of its own. Needs no privilege.
package final class TestPCSC: Sendable {
  package struct StartError: Error, CustomStringConvertible {
    package let description: String
  }

  /// Binds the socket that pcscd gets as systemd gives it, descriptor 3, and becomes pcscd.
  private static let launcher = """
    import os, socket, sys
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen()
    os.dup2(listener.fileno(), 3)
    os.set_inheritable(3, True)
    os.dup2(2, 1)
    os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
    os.execv("/usr/sbin/pcscd", ["pcscd", "--foreground", "-c", sys.argv[2]] + sys.argv[3:])
    """

  /// The port of the first slot on the loopback interface; the second slot's is the next one.
  package let port: UInt16
  package let folder: String
  private let process = Mutex<RunningProgram?>(nil)

  package init() throws {
    folder = "/tmp/pcsc-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(atPath: "\(folder)/readers", withIntermediateDirectories: true)
    port = try UInt16(FreePort.reserve(count: 2))
    try start()
  }

  deinit {
    stop()
    try? FileManager.default.removeItem(atPath: folder)
  }

  package var socket: String { "\(folder)/socket" }

  private func configure(_ name: String) throws {
    let hexadecimal = String(port, radix: 16, uppercase: true)
    let reader = """
      FRIENDLYNAME "\(name)"
      DEVICENAME /dev/null:0x\(hexadecimal)
      LIBPATH /usr/lib/pcsc/drivers/serial/libifdvpcd.so
      CHANNELID 0x\(hexadecimal)

      """
    try reader.write(toFile: "\(folder)/readers/vpcd", atomically: true, encoding: .utf8)
  }

  /// - Parameter name: of the reader.
  package func start(withReader name: String = "Virtual PCD") throws {
    try configure(name)
    unlink(socket)
    // Its polkit rules are not those of a test.
    let options = Self.hasPolkit ? ["--disable-polkit"] : []
    // The log has each card, and each command of a program.
    let process = try RunningProgram(
      "/usr/bin/python3", ["-c", Self.launcher, socket, "\(folder)/readers", "--debug"] + options, errors: log)
    self.process.withLock { $0 = process }
    let deadline = ContinuousClock.now + .seconds(60)
    while !Self.isListening(port + 1) {
      guard process.isRunning, ContinuousClock.now < deadline else {
        let end = process.isRunning ? "within 60 s" : "and has ended"
        throw StartError(
          description: "pcscd does not open the ports of its virtual reader \(end): \(said.suffix(400))")
      }
      usleep(10_000)
    }
  }

  package func stop() {
    process.withLock { process in
      process?.send(SIGKILL)
      process?.waitForEnd()
      process = nil
    }
  }

  // MARK: What pcscd has noticed

  private var log: String { "\(folder)/log" }
  /// What pcscd has written since its start.
  private var said: String { (try? wholeText(of: log)) ?? "" }

  /// pcscd writes a line a moment before it does what the line says.
  private static let settling = Duration.milliseconds(500)

  /// Waits until pcscd has noticed that the card was removed from a slot, at most 60 s: a removal that it does not see,
  /// because another card follows at once, is none.
  package func untilEmpty(slot: UInt16 = 0) async throws {
    _ = try await eventually("pcscd sees that slot \(slot) is empty") { () -> Bool? in
      let changes = said.split(separator: "\n").filter { line in
        line.hasSuffix(" 00 0\(slot)") && (line.contains("Card Removed From") || line.contains("Card inserted into"))
      }
      return changes.last?.contains("Card Removed From") == true ? true : nil
    }
    try await Task.sleep(for: Self.settling)
  }

  /// Waits until a program knows what is in the readers since pcscd was started, at most 60 s: it asks what is there,
  /// and then what changes.
  package func untilListed() async throws {
    _ = try await eventually("a program lists the readers") { () -> Bool? in
      let line = "Received command: CMD_WAIT_READER_STATE_CHANGE"
      return said.split(separator: "\n").count { $0.contains(line) } >= 2 ? true : nil
    }
    try await Task.sleep(for: Self.settling)
  }

  /// The version 2 of Debian 13 asks polkit.
  private static let hasPolkit: Bool = {
    guard let help = try? run("/usr/sbin/pcscd", ["--help"]) else { return false }
    return (help.text + help.errors).contains("disable-polkit")
  }()

  /// Whether the kernel lists a listener at the port: a connection would be a card.
  private static func isListening(_ port: UInt16) -> Bool {
    let hexadecimal = String(port, radix: 16, uppercase: true)
    let wanted = ":" + String(repeating: "0", count: 4 - hexadecimal.count) + hexadecimal
    return ["/proc/net/tcp", "/proc/net/tcp6"].contains { file in
      ((try? wholeText(of: file)) ?? "").split(separator: "\n").contains { line in
        let fields = line.split(separator: " ")
        return fields.count > 3 && fields[1].hasSuffix(wanted) && fields[3] == "0A"
      }
    }
  }
}
