// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Cryptography
import DisplayText
import Foundation
import Glibc
import ReferenceProtocol
import Synchronization
import TokenServerCore
import TokenServerStore

/// Options of all commands.
struct CommonOptions: ParsableArguments {
  @Option(name: .shortAndLong, help: "The server's directory.")
  var directory = "token-server.d"

  @Flag(help: "Print JSON.")
  var json = false

  var serverDirectory: ServerDirectory { ServerDirectory(path: directory) }

  /// Prints a value as text lines or as one JSON value.
  /// - Parameter advice: what to do if it is lost, as nothing else has it.
  /// - Throws: exit code 69, after a message, if it cannot be written.
  func print(_ value: some Encodable, _ text: @autoclosure () -> String, ifLost advice: String? = nil) throws {
    // Sanitize each line, because devices and portals control parts of the text.
    let result = json ? String(decoding: JSON.encode(value), as: UTF8.self).escapedForDisplay : text().sanitizedLines
    // The reader of a pipe may have ended.
    signal(SIGPIPE, SIG_IGN)
    guard ServerDirectory.writeAll(Array("\(result)\n".utf8), to: STDOUT_FILENO) else {
      let fault = "cannot write to standard output: \(String(cString: strerror(errno)))"
      complain("Error: \(fault)\(advice.map { "; \($0)" } ?? "")")
      throw ExitCode(69)
    }
  }

  func open() async throws -> AdminSession {
    let directory = serverDirectory
    let store = try await directory.openStore(directory.configuration().database)
    return AdminSession(store: store, hasher: try await directory.peppers(of: store).hasher, directory: directory)
  }
}

/// An administrator's command with access to the database; the server may be running.
struct AdminSession {
  private let store: Store
  let hasher: KeyedHasher
  let directory: ServerDirectory

  init(store: Store, hasher: KeyedHasher, directory: ServerDirectory) {
    self.store = store
    self.hasher = hasher
    self.directory = directory
  }

  func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
    try await store.read(body)
  }

  /// As `Store.write`.
  /// - Throws: also `CommandError`, without a change, if the pepper was rotated since `hasher` was made: what it hashes
  ///   would be refused once the former pepper is retired.
  func write<Value: Sendable>(_ change: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
    try await store.write { [hasher] database in
      guard try hasher.canDecryptKeys(in: database) else {
        throw CommandError("the pepper was rotated meanwhile, and nothing was changed: run the command again")
      }
      return try change(database)
    }
  }

  /// As `write`, for a change to which something belongs that the command made before.
  /// - Parameter undo: called before an error is thrown, with whether the change may be stored nevertheless: the
  ///   database was asked to commit it.
  func write(
    undo: (_ mayBeStored: Bool) -> Void, _ change: @escaping @Sendable (Database) throws -> Void
  ) async throws {
    let attempt = Attempt()
    do {
      try await write { database in
        attempt.hasEnded.store(false, ordering: .relaxed)
        try change(database)
        attempt.hasEnded.store(true, ordering: .relaxed)
      }
    } catch {
      undo(attempt.hasEnded.load(ordering: .relaxed))
      throw error
    }
  }

  /// What is known of a change that the database may run more than once.
  private final class Attempt: Sendable {
    /// Whether its last run has ended without an error.
    let hasEnded = Atomic(false)
  }

  /// - Throws: `CommandError` if there is no such user.
  func requireUser(_ user: String) async throws {
    guard try await read({ try $0.hasUser(UserID(user)) }) else {
      throw CommandError("there is no user \(user)")
    }
  }

  /// A new secret of a portal, and the hash of it that the server stores.
  func newPortalSecret() -> (secret: String, hash: [UInt8]) {
    let secret = Random.bytes(32).lowercaseHex
    return (secret, hasher.hash(secret, for: .portalSecret))
  }

  /// Makes a change and wakes the running server, which notifies the devices.
  func change(_ body: @escaping @Sendable (Database) throws -> Effects) async throws {
    try await write { try $0.post(body($0), now: ServerClock.system.now()) }
    if store.sharedBy != nil { await store.notifyServers() } else { WakePipe(path: directory.wakePipeFile).ring() }
  }
}

/// Prints a warning on standard error; the command continues, also if that cannot be written.
func complain(_ line: String) {
  let bytes = Array("\(line.sanitized(atMost: 2000))\n".utf8)
  _ = write(2, bytes, bytes.count)
}

/// An error that ends a command with a message and exit code 1.
struct CommandError: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// A time as text: UTC, to the second.
func moment(_ time: Timestamp) -> String {
  Date(timeIntervalSince1970: Double(time.milliseconds / 1000)).formatted(.iso8601)
}

/// Validates a name for URL paths, forms and logs: 1 to 128 bytes without spaces and control or invisible
/// characters, with marks as few as forms may have.
func validated(_ name: String, as what: String) throws(ValidationError) -> String {
  guard !name.isEmpty, name.utf8.count <= 128, !name.hasTooManyCombiningMarks, name.isSafeName,
    !name.contains(where: \.isWhitespace)
  else {
    throw ValidationError(
      "\(what) must have 1 to 128 bytes without spaces and control, format or invisible characters, and at most 30 marks "
        + "in a character"
    )
  }
  return name
}
