// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation

/// The result of a finished command.
package struct Outcome: Sendable {
  package let exit: ChildProcess.Exit
  package let output: String
  package let errors: String

  package func decoded<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    do { return try decoder.decode(type, from: Data(output.utf8)) } catch {
      throw OutputTimeoutError(description: "a \(type) in: \(output)\n\(errors)\n\(error)")
    }
  }

  /// - Throws: unless the exit code is 0.
  @discardableResult
  package func succeeded() throws -> Outcome {
    guard exit == .code(0) else { throw OutputTimeoutError(description: "success: \(exit) with \(output)\n\(errors)") }
    return self
  }
}

package func run(_ program: String, _ arguments: [String]) async throws -> Outcome {
  try await ChildProcess(program, arguments).outcome()
}

extension ChildProcess {
  package func outcome() async throws -> Outcome {
    let exit = try await exit()
    return Outcome(exit: exit, output: try await output.whole(), errors: try await errors.whole())
  }
}

/// The programs under test.
package enum Program {
  package static let token = path("approval-token")
  /// What the units of the package start.
  package static let service = path("approval-tokend")
  package static let network = path("approval-token-network")
  package static let server = path("token-server")
  package static let cardSecrets = path("card-secrets")

  /// A missing program is reported when it is started.
  private static func path(_ name: String) -> String { (try? BuiltProgram.path(name)) ?? "/not built/\(name)" }
}

/// A directory for one test, deleted with `remove()`.
package struct TemporaryDirectory: Sendable {
  package let path: String

  package init() throws {
    // Short, because a control socket's path is limited to 107 bytes.
    path = "/tmp/e2e-\(UInt32.random(in: .min ... .max))"
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  package func file(_ name: String) -> String { "\(path)/\(name)" }

  package func write(_ text: String, to name: String) throws -> String {
    try text.write(toFile: file(name), atomically: true, encoding: .utf8)
    return file(name)
  }

  package func remove() { try? FileManager.default.removeItem(atPath: path) }
}
