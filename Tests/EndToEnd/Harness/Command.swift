import Foundation

/// What became of a command that ran to its end.
struct Outcome: Sendable {
  let exit: ChildProcess.Exit
  let output: String
  let errors: String

  func decoded<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    do { return try decoder.decode(type, from: Data(output.utf8)) } catch {
      throw NotSeen(description: "a \(type) in: \(output)\n\(errors)\n\(error)")
    }
  }

  /// - Throws: unless it ended with 0.
  @discardableResult
  func succeeded() throws -> Outcome {
    guard exit == .code(0) else { throw NotSeen(description: "success: \(exit) with \(output)\n\(errors)") }
    return self
  }
}

func run(_ program: String, _ arguments: [String]) async throws -> Outcome {
  try await ChildProcess(program, arguments).outcome()
}

extension ChildProcess {
  func outcome() async throws -> Outcome {
    let exit = try await exit()
    return Outcome(exit: exit, output: try await output.whole(), errors: try await errors.whole())
  }
}

/// The programs under test: the build puts them beside the test runner.
enum Program {
  static let token = folder + "/approval-token"
  static let server = folder + "/token-server"
  static let cardSecrets = folder + "/card-secrets"

  private static let folder: String = {
    let runner = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return (runner as NSString).deletingLastPathComponent
  }()
}

/// A directory of its own for one test; gone with `remove()`.
struct TemporaryDirectory: Sendable {
  let path: String

  init() throws {
    // Short: a control socket's path has 107 bytes at most.
    path = "/tmp/e2e-\(UInt32.random(in: .min ... .max))"
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  func file(_ name: String) -> String { "\(path)/\(name)" }

  func write(_ text: String, to name: String) throws -> String {
    try text.write(toFile: file(name), atomically: true, encoding: .utf8)
    return file(name)
  }

  func remove() { try? FileManager.default.removeItem(atPath: path) }
}
