// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import CurlHTTP
import Foundation
import HTTP
import Synchronization
import Testing

/// A server of `Fixtures/hostile-server.py` with its own port. Codable, to be passed to exit tests.
struct HostileServer: Sendable, Codable {
  let port: Int
  /// The file with the authority that issued most certificates of these tests.
  let authorityFile: String
  var trust: ServerTrust { ServerTrust(authorityFile: authorityFile) }

  init(_ certificate: Certificate = .good, oldTLS: Bool = false) throws {
    let files = try Certificate.directory.get()
    authorityFile = files + "root.pem"
    port = try HostileProcess.shared.get().start(
      "\(files)\(certificate.rawValue).pem \(files)leaf.key" + (oldTLS ? " old-tls" : ""))
  }

  /// Starts a proxy that connects every tunnel to this server.
  /// - Returns: its port.
  func startProxy() throws -> Int {
    try HostileProcess.shared.get().start("proxy \(port)")
  }

  func url(_ path: String, host: String = "localhost") -> String { "https://\(host):\(port)/\(path)" }

  /// Sends a control request about previous events, with a separate HTTP client.
  func ask(_ path: String) async throws -> String {
    let http = CurlHTTPTransport(trust: trust)
    return String(decoding: try await http.send(HTTPRequest(.get, url(path))).body, as: UTF8.self)
  }
}

/// The process of all hostile servers. It ends when its standard input is closed, and so with the tests in every case.
private final class HostileProcess: Sendable {
  static let shared = Result { try HostileProcess() }
  private let pipes: Mutex<(input: FileHandle, output: FileHandle)>

  init() throws {
    let (input, output) = (Pipe(), Pipe())
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", fixtures + "hostile-server.py"]
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    pipes = Mutex((input.fileHandleForWriting, output.fileHandleForReading))
  }

  func start(_ order: String) throws -> Int {
    let answer = try pipes.withLock { pipes in
      try pipes.input.write(contentsOf: Data("\(order)\n".utf8))
      guard isReadable(pipes.output.fileDescriptor, within: .seconds(60)) else { return "nothing" }
      var line: [UInt8] = []
      while let byte = try pipes.output.read(upToCount: 1)?.first, byte != UInt8(ascii: "\n") { line.append(byte) }
      return String(decoding: line, as: UTF8.self)
    }
    return try #require(Int(answer), "hostile-server.py says \(answer) instead of a port; is python3 installed?")
  }
}

/// The certificates that `Fixtures/make-certificates.sh` makes.
enum Certificate: String, Sendable {
  case good, expired, chain
  case notYetValid = "not-yet-valid"
  case wrongName = "wrong-name"
  case selfSigned = "self-signed"
  case expiredSelfSigned = "expired-self-signed"
  case missingIssuer = "under-issuer"
  case expiredIssuer = "chain-with-expired-issuer"
  case chainWithRoot = "chain-with-root"
  case chainWithExpiredRoot = "chain-with-expired-root"

  /// Made once per run. The system cleans its temporary directory.
  static let directory = Result {
    let directory = FileManager.default.temporaryDirectory.path + "/client-certificates-\(getpid())/"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    let output = try BuiltPrograms.run("/bin/sh", [fixtures + "make-certificates.sh", directory])
    try #require(output.status == 0, "make-certificates.sh failed; is the openssl command installed?")
    return directory
  }

  /// The pin of every leaf, or of a key that no server uses, computed by openssl's command line.
  static func pin(of key: String = "leaf") throws -> String {
    try String(contentsOfFile: directory.get() + key + ".pin", encoding: .utf8).trimmingCharacters(in: .newlines)
  }
}

private let fixtures = URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/Fixtures/"
