// SPDX-License-Identifier: Apache-2.0
import Dispatch
import Glibc
import Logging
import ReferenceProtocol
import Synchronization
import TokenServerCore

/// Runs the scripts of custom authenticators as processes, each in the authenticator's folder.
final class ScriptProcesses: ScriptRunner {
  /// The maximum number of scripts that run at the same time. Each blocks a thread.
  static let most = 16
  /// The maximum number of those for one device, so that none occupies them all.
  static let mostForOneDevice = 4

  private let directory: ServerDirectory
  private let log: Logger
  /// The number of scripts that run, by client ID.
  private let running = Mutex([String: Int]())

  init(directory: ServerDirectory, log: Logger) {
    self.directory = directory
    self.log = log
  }

  func run(_ call: ScriptCall, of authenticator: ServerConfiguration.Authenticator) async -> ScriptResult? {
    guard enter(call.clientID) else { return nil }
    defer { leave(call.clientID) }
    let result = await result(of: call, authenticator)
    if result.outcome == .notRun {
      log.error(
        "script \(call.step.rawValue) of authenticator \(authenticator.id): status \(result.status), \(result.fault)")
    }
    return result
  }

  private func enter(_ device: String) -> Bool {
    running.withLock { running in
      let own = running[device, default: 0]
      guard own < Self.mostForOneDevice, running.values.reduce(0, +) < Self.most else { return false }
      running[device] = own + 1
      return true
    }
  }

  private func leave(_ device: String) {
    running.withLock { running in
      let left = running[device, default: 0] - 1
      running[device] = left > 0 ? left : nil
    }
  }

  private func result(of call: ScriptCall, _ authenticator: ServerConfiguration.Authenticator) async -> ScriptResult {
    let folder = directory.absoluteFile(authenticator.scripts)
    let file = "\(folder)/\(call.step.rawValue)"
    guard access(file, F_OK) == 0 else { return ScriptResult(status: ScriptResult.missing) }
    guard access(file, X_OK) == 0 else { return ScriptResult(status: ScriptResult.notExecutable) }
    let process = ScriptProcess(
      command: Self.command(file, user: authenticator.user), folder: folder,
      timeLimit: .seconds(authenticator.timeLimitSeconds), outputLimit: ScriptResult.largestOutput)
    let input = JSON.encode(call)
    return await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        switch process.run(input) {
        case .failed: continuation.resume(returning: ScriptResult(status: ScriptResult.executionFailed))
        case .output(let output): continuation.resume(returning: ScriptResult(parsing: output))
        }
      }
    }
  }

  /// - Parameter user: the user that runs the program, which only a server of root can choose.
  static func command(_ file: String, user: String?) -> [String] {
    guard let user else { return [file] }
    return [
      "/usr/bin/setpriv", "--reuid=\(user)", "--regid=\(group(of: user))", "--init-groups", "--no-new-privs", file,
    ]
  }

  private static func group(of user: String) -> String {
    var entry = passwd()
    var found: UnsafeMutablePointer<passwd>?
    var buffer = [CChar](repeating: 0, count: 16_384)
    guard getpwnam_r(user, &entry, &buffer, buffer.count, &found) == 0, found != nil else { return user }
    return "\(entry.pw_gid)"
  }
}

extension ScriptResult {
  /// For the log.
  fileprivate var fault: String {
    switch status {
    case Self.missing: "the file does not exist"
    case Self.executionFailed: "could not be started, exceeded its time or size limit, or ended with an error"
    case Self.notExecutable: "the file is not executable"
    case Self.badResult: "the output is not a result"
    default: "as the script says"
    }
  }
}
