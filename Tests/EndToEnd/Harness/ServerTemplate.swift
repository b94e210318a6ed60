// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness

/// The files of `token-server init` with the user alice and a portal: created once, and copied for each test. The
/// template is in memory, so that no cleanup is necessary.
struct ServerTemplate: Sendable {
  /// The credentials of the portal in the format of curl's `--user`.
  let credentials: String
  private let files: [String: Data]

  private static let plain = Task { try await ServerTemplate(["init", "--no-pin"]) }
  private static let withPIN = Task { try await ServerTemplate(["init"]) }

  static func made(withPIN: Bool) async throws -> ServerTemplate {
    try await (withPIN ? Self.withPIN : plain).value
  }

  private init(_ initialization: [String]) async throws {
    struct Added: Decodable { let clientSecret: String }
    let folder = try TemporaryDirectory()
    defer { folder.remove() }
    let directory = folder.file("server")
    func command(_ words: [String]) async throws -> Outcome {
      try await run(Program.server, words + ["--directory", directory, "--json"]).succeeded()
    }
    _ = try await command(initialization)
    _ = try await command(["user", "add", "alice"])
    credentials = "portal:\(try await command(["api-client", "add", "portal"]).decoded(Added.self).clientSecret)"
    let names = try FileManager.default.contentsOfDirectory(atPath: directory)
    files = try Dictionary(
      uniqueKeysWithValues: names.map { ($0, try Data(contentsOf: URL(filePath: "\(directory)/\($0)"))) })
  }

  /// Writes the files with the modes of `init`: access for the owner only.
  func write(to directory: String) throws {
    let manager = FileManager.default
    try manager.createDirectory(
      atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    for (name, content) in files {
      let path = "\(directory)/\(name)"
      guard manager.createFile(atPath: path, contents: content, attributes: [.posixPermissions: 0o600]) else {
        throw OutputTimeoutError(description: "a copy of \(name)")
      }
    }
  }
}
