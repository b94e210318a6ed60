import Courier
import CurlCourier
import Foundation
import Testing

/// `Fixtures/hostile-server.py` in a process of its own, on a port of its own, for as long as somebody holds this.
final class HostileServer: Sendable {
  let port: Int
  private let process: Process
  /// The server ends when this closes, also if the tests die first.
  private let input = Pipe()

  init(_ certificate: Certificate = .good, oldTLS: Bool = false) throws {
    let files = try Certificate.directory.get()
    let output = Pipe()
    process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments =
      ["python3", fixtures + "hostile-server.py", files + certificate.rawValue + ".pem", files + "leaf.key"]
      + (oldTLS ? ["old-tls"] : [])
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    port = try #require(Int(line.dropLast()), "the hostile server says \(line) instead of its port")
  }

  deinit {
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  func url(_ path: String, host: String = "localhost") -> String { "https://\(host):\(port)/\(path)" }

  /// A well-behaved request about what happened, over a courier of its own.
  func ask(_ path: String) async throws -> String {
    let courier = try CurlCourier(trust: .testAuthority())
    return String(decoding: try await courier.send(HTTPRequest(.get, url(path))).body, as: UTF8.self)
  }
}

/// What `Fixtures/make-certificates.sh` makes.
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

  /// Made once per run, and left to the system's own cleaning of its temporary directory.
  static let directory = Result {
    let directory = FileManager.default.temporaryDirectory.path + "/courier-certificates-\(getpid())/"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = [fixtures + "make-certificates.sh", directory]
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0, "make-certificates.sh failed; is the openssl command installed?")
    return directory
  }

  /// The pin of every leaf, or of a key no server has, as openssl's command line computes it.
  static func pin(of key: String = "leaf") throws -> String {
    try String(contentsOfFile: directory.get() + key + ".pin", encoding: .utf8).trimmingCharacters(in: .newlines)
  }
}

extension ServerTrust {
  static func testAuthority(pins: [String] = []) throws -> ServerTrust {
    ServerTrust(pins: pins, authorityFile: try Certificate.directory.get() + "root.pem")
  }
}

private let fixtures = URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/Fixtures/"
