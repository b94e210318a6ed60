// SPDX-License-Identifier: Apache-2.0
import Foundation
import MobileAuth
import Secrets

@testable import AuthenticatorPlugins

/// A plug-in that is a shell script in a folder of its own.
final class TestPlugin: Sendable {
  let folder: String

  /// - Parameter script: runs in `/`; `$folder` is the plug-in's folder. The question is on standard input.
  init(_ script: String) throws {
    folder = "/tmp/plug-in-tests-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let text = "folder=\(folder)\n\(script)\n"
    try text.write(toFile: program, atomically: true, encoding: .utf8)
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  var program: String { "\(folder)/program" }

  /// What the script wrote into a file of its folder; nil without the file.
  func written(_ file: String) -> String? {
    (try? String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8)).map {
      $0.trimmingCharacters(in: .whitespacesAndNewlines)
    }
  }

  /// - Parameter patience: by default long, as the machine may be busy.
  func driver(limit: Duration = .seconds(60), patience: PluginPatience = TestPlugin.patience) -> PluginDriver {
    // A file that was just written cannot be executed while a process that was started meanwhile can write to it.
    let command = ["/bin/sh", program, "one", "two"]
    var configuration = PluginConfiguration(authenticator: "badge", program: .command(command))
    configuration.timeLimit = limit
    return PluginDriver(configuration, patience: patience)
  }

  /// All events of one use.
  func events(
    limit: Duration = .seconds(60), patience: PluginPatience = TestPlugin.patience
  ) async -> [DriverEvent] {
    await driver(limit: limit, patience: patience).all(of: Self.call)
  }

  static let patience = PluginPatience(afterAnswer: .seconds(30))

  static let call = DriverCall(
    step: .authenticate, server: "h", account: "alice", authenticator: "badge", challenge: [UInt8](0..<32),
    registration: [1, 2])

  /// Whether no process has the number that the script wrote into `pid`.
  var isGone: Bool {
    guard let pid = written("pid").flatMap(pid_t.init) else { return false }
    return kill(pid, 0) != 0 && errno == ESRCH
  }
}

extension AuthenticatorDriver {
  func all(of call: DriverCall) async -> [DriverEvent] {
    var all: [DriverEvent] = []
    for await event in events(for: call) { all.append(event) }
    return all
  }
}

func data(_ bytes: [UInt8], registration: [UInt8] = []) -> DriverEvent {
  .data(AuthenticatorData(SecretBytes(copying: bytes), registration: registration))
}
