// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser
import ControlProtocol
import Glibc

/// A command that needs the vault or the hardware: `approval-token` leaves it to the daemon's program.
package protocol DaemonCommand: ParsableCommand {}

extension DaemonCommand {
  package func run() throws { try reporting { try DaemonProgram.start() } }
}

/// The program that runs the service, and commands in its one-shot mode.
enum DaemonProgram {
  /// Its place in an installation, unless it is beside `approval-token`. No environment variable changes the place.
  private static let installed = "/usr/libexec/approval-token/approval-tokend"

  /// Replaces this process by the daemon's program with the same arguments: exit code, terminal, standard input and
  /// signals are that program's. The calling thread must be the first: others may have signals blocked, which the
  /// program would inherit.
  /// - Throws: if the program is missing or cannot be started.
  static func start() throws(CommandError) -> Never {
    let places = [besideThisProgram, installed].compactMap(\.self)
    guard let program = places.first(where: { access($0, F_OK) == 0 }) else {
      throw CommandError(
        .unavailable,
        "the program approval-tokend is missing; looked for \(places.joined(separator: " and ")). Install it together "
          + "with approval-token")
    }
    // The arguments as they are, also if they are not UTF-8.
    var words = Array(UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc))) + [nil]
    words[0] = strdup(program)
    execv(program, words)
    throw CommandError(.unavailable, "cannot start \(program): \(String(cString: strerror(errno)))")
  }

  private static var besideThisProgram: String? {
    var path = [CChar](repeating: 0, count: Int(PATH_MAX))
    let length = readlink("/proc/self/exe", &path, path.count)
    guard length > 0 else { return nil }
    let own = String(decoding: path[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self)
    return own.lastIndex(of: "/").map { String(own[...$0]) + "approval-tokend" }
  }
}
