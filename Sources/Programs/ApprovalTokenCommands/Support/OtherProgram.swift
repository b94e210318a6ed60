// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser
import ControlProtocol
import Glibc

/// A command that needs the vault or the hardware: `approval-token` leaves it to the daemon's program.
package protocol DaemonCommand: ParsableCommand {}

extension DaemonCommand {
  package func run() throws { try reporting { try OtherProgram.daemon.start() } }
}

/// A program of the token that takes the place of `approval-token`.
enum OtherProgram: String {
  /// Runs the service, and commands in its one-shot mode.
  case daemon = "approval-tokend"
  /// Runs the network process.
  case network = "approval-token-network"

  /// Replaces this process by the program: exit code, terminal, standard input and signals are that program's. The
  /// program inherits which signals the calling thread has blocked. Threads of tasks have blocked those of
  /// `MainThread`, which the programs block and receive themselves.
  /// - Parameter arguments: nil for those of this process.
  /// - Throws: if the program is missing or cannot be started.
  func start(_ arguments: [String]? = nil) throws(CommandError) -> Never {
    // Its place in an installation, unless it is beside this program. No environment variable changes the place.
    let places = [besideThisProgram, "/usr/libexec/approval-token/\(rawValue)"].compactMap(\.self)
    guard let program = places.first(where: { access($0, F_OK) == 0 }) else {
      throw CommandError(
        .unavailable,
        "the program \(rawValue) is missing; looked for \(places.joined(separator: " and ")). Install it together "
          + "with approval-token")
    }
    // The arguments as they are, also if they are not UTF-8.
    let own = UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc)).dropFirst()
    let words = [strdup(program)] + (arguments.map { $0.map { strdup($0) } } ?? Array(own)) + [nil]
    execv(program, words)
    throw CommandError(.unavailable, "cannot start \(program): \(String(cString: strerror(errno)))")
  }

  private var besideThisProgram: String? {
    var path = [CChar](repeating: 0, count: Int(PATH_MAX))
    let length = readlink("/proc/self/exe", &path, path.count)
    guard length > 0 else { return nil }
    let own = String(decoding: path[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self)
    return own.lastIndex(of: "/").map { String(own[...$0]) + rawValue }
  }
}
