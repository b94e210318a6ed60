// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Cryptography
import Foundation
import Glibc
import NIOSSL
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

struct InitCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "init",
    abstract: "Create a new server: keys, certificates, configuration, database.",
    discussion: "All files go into one new directory that only its owner may read. An existing directory is an error.")

  @OptionGroup var options: CommonOptions

  @Option(help: "A DNS name or IP address for the certificate, in addition to localhost. Repeatable.")
  var host: [String] = []

  @Flag(
    inversion: .prefixedNo,
    help: "Whether users choose a PIN when they are activated, which the type \"payment\" then requires.")
  var pin = true

  @Option(help: "An empty PostgreSQL database, postgresql://USER[:PASSWORD]@HOST/DATABASE, in place of a file.")
  var database: String?

  private struct Made: Encodable {
    var directory: String
    var authority: String
    var pinSHA256: String

    enum CodingKeys: String, CodingKey {
      case directory, authority
      case pinSHA256 = "pin_sha256"
    }
  }

  func run() async throws {
    let target = options.serverDirectory
    let address = try database.map { try PostgreSQLAddress($0) }
    guard !FileManager.default.fileExists(atPath: target.path) else {
      throw CommandError("\(target.path) already exists; choose a new directory")
    }
    reportDrafts(of: target.path)
    if let address, try Store.hasServerKeys(address) {
      throw CommandError(
        "the database has the keys of a token server: use an empty one; if the keys are of an \"init\" that was "
          + "interrupted, create the database again")
    }
    // Fill a temporary directory and rename it, so that the directory is complete or does not exist.
    let draft = ServerDirectory(path: "\(target.path).new-\(Random.bytes(4).lowercaseHex)")
    guard mkdir(draft.path, 0o700) == 0 else {
      throw CommandError("cannot create \(draft.path): \(String(cString: strerror(errno)))")
    }
    do {
      try await fill(draft)
      guard rename(draft.path, target.path) == 0 else {
        throw CommandError("cannot create \(target.path): \(String(cString: strerror(errno)))")
      }
    } catch {
      try? FileManager.default.removeItem(atPath: draft.path)
      throw error
    }
    let made = Made(
      directory: target.path, authority: target.file("ca.pem"),
      pinSHA256: try ServerPin.read(target.file("server.pem")))
    try options.print(
      made,
      """
      made \(made.directory)
      certificate authority for portals: \(made.authority)
      pin for tokens: \(made.pinSHA256)
      next: token-server serve --directory \(made.directory)
      for tokens on other machines, first set "listen" and "issuer" in \(target.configurationFile)
      """)
  }

  /// Names the directories that interrupted runs have left: they have private keys.
  private func reportDrafts(of path: String) {
    let name = path.split(separator: "/").last ?? ""
    let parent = String(path.dropLast(name.count))
    let entries = (try? FileManager.default.contentsOfDirectory(atPath: parent.isEmpty ? "." : parent)) ?? []
    for entry in entries.sorted() where entry.hasPrefix("\(name).new-") {
      let end = entry.dropFirst(name.count + 5)
      guard end.count == 8, end.allSatisfy({ "0123456789abcdef".contains($0) }) else { continue }
      complain(
        "warning: \(parent)\(entry) is of an init that was interrupted or still runs, and has private keys: if none runs, "
          + "delete it")
    }
  }

  private func fill(_ directory: ServerDirectory) async throws {
    let certificates = try CertificateMaker.make(hosts: host)
    try ServerDirectory.write(Random.bytes(32), to: directory.pepperFile)
    for (name, text, mode) in [
      ("ca.pem", certificates.authority, 0o644), ("ca.key", certificates.authorityKey, 0o600),
      ("server.pem", certificates.server, 0o644), ("server.key", certificates.serverKey, 0o600),
      ("config.toml", ConfigurationTemplate.text(pin: pin, database: database), 0o600),
    ] as [(String, String, mode_t)] {
      try ServerDirectory.write(Array(text.utf8), to: directory.file(name), mode: mode)
    }
    // Create the file before SQLite opens it, so that SQLite creates the WAL and shared-memory files with the same
    // mode.
    if database == nil { try ServerDirectory.write([], to: directory.databaseFile) }
    let store = try await directory.openStore(directory.configuration().database, isNew: true)
    _ = try await ServerKeyring(store: store.records, hasher: KeyedHasher(try directory.pepper())).shared()
    store.close()
  }
}

/// The pin by which tokens authenticate the server.
enum ServerPin {
  /// Base64 of SHA-256 over the SubjectPublicKeyInfo of the first certificate in a PEM file.
  static func read(_ path: String) throws -> String {
    guard let certificate = try NIOSSLCertificate.fromPEMFile(path).first else {
      throw CommandError("\(path) has no certificate")
    }
    return SHA256.hash(try certificate.extractPublicKey().toSPKIBytes()).base64
  }
}
