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
  private let log: DeviceLog
  private let isRoot: Bool
  /// The number of scripts that run, by client ID.
  private let running = Mutex([String: Int]())
  private let groups = ScriptGroups()

  /// - Parameter isRoot: whether the scripts of other users can be run.
  init(directory: ServerDirectory, log: DeviceLog, isRoot: Bool = geteuid() == 0) {
    self.directory = directory
    self.log = log
    self.isRoot = isRoot
  }

  func run(_ call: ScriptCall, of authenticator: ServerConfiguration.Authenticator) async -> ScriptResult? {
    guard enter(call.clientID) else { return nil }
    defer { leave(call.clientID) }
    let result = await result(of: call, authenticator)
    if [.notRun, .noResult].contains(result.outcome) {
      log.about(ClientID(call.clientID)).error(
        "script \(call.step.rawValue) of authenticator \(authenticator.id): status \(result.status), \(result.fault)")
    }
    return result
  }

  func canRun(_ authenticator: ServerConfiguration.Authenticator) -> Bool {
    Self.obstacle(to: authenticator, in: directory, isRoot: isRoot) == nil
  }

  /// Kills all scripts that run: the server ends. None is started any more.
  func end() { groups.end() }

  /// Why one of the scripts cannot be run now; nil for a built-in verifier and for scripts that can be run.
  static func obstacle(
    to authenticator: ServerConfiguration.Authenticator, in directory: ServerDirectory, isRoot: Bool = geteuid() == 0
  ) -> String? {
    guard authenticator.kind == .custom, authenticator.signature == nil else { return nil }
    let name = "authenticator \(authenticator.id)"
    for step in ScriptCall.Step.allCases {
      let file = file(of: step, authenticator, in: directory)
      guard access(file, F_OK) == 0 else { return "\(name) cannot be used: \(file) does not exist" }
      guard access(file, X_OK) == 0 else { return "\(name) cannot be used: \(file) is not executable" }
    }
    // setpriv would fail like a script that gives no result, and the attempt would count.
    guard isRoot || authenticator.user == nil else {
      return "\(name) cannot be used: its user is set, and the server does not run as root"
    }
    return nil
  }

  /// Warnings about the authenticators that are enabled and cannot be used.
  static func warnings(about configuration: ServerConfiguration, in directory: ServerDirectory) -> [String] {
    guard configuration.isEnabled(.custom) else { return [] }
    return configuration.authenticators.compactMap { obstacle(to: $0, in: directory) }
  }

  private static func file(
    of step: ScriptCall.Step, _ authenticator: ServerConfiguration.Authenticator, in directory: ServerDirectory
  ) -> String { "\(directory.absoluteFile(authenticator.scripts))/\(step.rawValue)" }

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
    let file = Self.file(of: call.step, authenticator, in: directory)
    guard access(file, F_OK) == 0 else { return ScriptResult(status: ScriptResult.missing) }
    guard access(file, X_OK) == 0 else { return ScriptResult(status: ScriptResult.notExecutable) }
    // setpriv would fail like a script that gives no result, and the attempt would count.
    guard isRoot || authenticator.user == nil else { return ScriptResult(status: ScriptResult.executionFailed) }
    let input = JSON.encode(call)
    return await withCheckedContinuation { [groups] continuation in
      DispatchQueue.global().async {
        // The user's group may come from a directory service, which can be slow.
        let process = ScriptProcess(
          command: Self.command(file, user: authenticator.user), folder: folder,
          timeLimit: .seconds(authenticator.timeLimitSeconds), outputLimit: ScriptResult.largestOutput, groups: groups)
        switch process.run(input) {
        case .notStarted: continuation.resume(returning: ScriptResult(status: ScriptResult.executionFailed))
        case .failed: continuation.resume(returning: .failed)
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
