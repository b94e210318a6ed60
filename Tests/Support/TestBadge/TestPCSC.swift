// SPDX-License-Identifier: Apache-2.0
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
    os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
    os.execv("/usr/sbin/pcscd", ["pcscd", "--foreground", "-c", sys.argv[2]] + sys.argv[3:])
    """

  /// The port of the first slot on the loopback interface; the second slot's is the next one.
  package let port: UInt16
  package let folder: String
  private let process = Mutex<Process?>(nil)

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
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/python3")
    // Its polkit rules are not those of a test.
    let options = Self.hasPolkit ? ["--disable-polkit"] : []
    process.arguments = ["-c", Self.launcher, socket, "\(folder)/readers"] + options
    let log = "\(folder)/log"
    _ = FileManager.default.createFile(atPath: log, contents: nil)
    process.standardOutput = FileHandle(forWritingAtPath: log)
    process.standardError = process.standardOutput
    try process.run()
    self.process.withLock { $0 = process }
    let deadline = ContinuousClock.now + .seconds(60)
    while !Self.isListening(port + 1) {
      guard process.isRunning, ContinuousClock.now < deadline else {
        let end = process.isRunning ? "within 60 s" : "and has ended"
        let said = (try? String(contentsOfFile: log, encoding: .utf8))?.suffix(400) ?? ""
        throw StartError(description: "pcscd does not open the ports of its virtual reader \(end): \(said)")
      }
      usleep(10_000)
    }
  }

  package func stop() {
    process.withLock { process in
      guard let running = process else { return }
      kill(running.processIdentifier, SIGKILL)
      running.waitUntilExit()
      process = nil
    }
  }

  /// The version 2 of Debian 13 asks polkit.
  private static let hasPolkit: Bool = {
    let help = Process()
    let pipe = Pipe()
    help.executableURL = URL(filePath: "/usr/sbin/pcscd")
    help.arguments = ["--help"]
    help.standardOutput = pipe
    help.standardError = pipe
    guard (try? help.run()) != nil else { return false }
    let text = pipe.fileHandleForReading.readDataToEndOfFile()
    help.waitUntilExit()
    return String(decoding: text, as: UTF8.self).contains("disable-polkit")
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
