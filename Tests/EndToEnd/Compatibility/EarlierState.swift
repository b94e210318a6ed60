// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness

/// The state that programs of an earlier version left behind: of a token server with a portal and of a token with
/// accounts of several kinds. All secrets in it are those of this test.
struct EarlierState {
  /// Data that only the programs' peers know.
  struct Metadata: Codable {
    /// When the state was made, in Unix seconds.
    let seconds: Int
    /// The portal's credentials in the format of curl's `--user`.
    let credentials: String
    /// The states of the server's transactions by id.
    let transactions: [String: String]
  }

  /// No other test listens at this loopback address, so the token's server is always found where it was.
  static let host = "127.94.19.58"
  static let port = 18443
  static let pins = ["alice": "13589", "bob": "80261"]
  static let wrongPIN = "24601"
  /// The PIN of the accounts `typed` and `dan`, which the token verifies itself.
  static let typedPIN = "135792"
  static let secret = "IBAUEQ2EIVDEOSCJJJFUYTKOJ5IFCUST"
  /// The first codes of a counter with this secret, as in `OneTimePasswordTests`.
  static let codes = ["467851", "443220", "307694", "553707", "597237"]

  let folder: TemporaryDirectory
  let metadata: Metadata
  /// Runs a program a minute after the state was made, whatever the date is today.
  let launcher: [String]

  static func certificateRequest(in folder: TemporaryDirectory) -> [String] {
    [
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
      "/CN=test am", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder.file("am.key"), "-out",
      folder.file("am.pem"),
    ]
  }

  /// The names of the commits whose state is in `Fixtures`.
  static let commits: [String] = {
    let files = (try? FileManager.default.contentsOfDirectory(atPath: fixtures)) ?? []
    let names = files.filter { $0.hasSuffix(suffix) }.map { $0.dropLast(suffix.count) }
    return names.filter { !$0.contains("-") }.map(String.init).sorted()
  }()

  private static let suffix = ".tar.xz"
  private static let fixtures = Bundle.module.bundleURL.appending(path: "Fixtures").path

  /// Unpacks the state of a commit.
  init(of commit: String) async throws {
    folder = try await Self.unpack(commit)
    metadata = try JSONDecoder().decode(Metadata.self, from: Data(contentsOf: URL(filePath: folder.file("facts.json"))))
    let age = Int(Date().timeIntervalSince1970) - metadata.seconds
    launcher = ["env", "LD_PRELOAD=\(try await wallClock(secondsBack: max(0, age - 60), in: folder))"]
  }

  /// - Parameter name: of a file in `Fixtures`, without the suffix.
  static func unpack(_ name: String) async throws -> TemporaryDirectory {
    let folder = try TemporaryDirectory()
    try await run("tar", ["-xJf", "\(fixtures)/\(name)\(suffix)", "-C", folder.path, "--no-same-owner"]).succeeded()
    return folder
  }

  var token: VersionedToken {
    VersionedToken(
      program: Program.token, state: folder.file("token"), board: folder.file("board.toml"), launcher: launcher)
  }

  var server: VersionedServer {
    VersionedServer(program: Program.server, directory: folder.file("server"), launcher: launcher)
  }
}
