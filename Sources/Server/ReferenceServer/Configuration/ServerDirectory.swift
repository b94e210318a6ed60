// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// The directory with all files of a server: configuration, keys, certificates, database. Mode 0700; every file with a
/// secret has mode 0600.
struct ServerDirectory: Sendable {
  /// Without slashes at the end.
  let path: String

  init(path: String) {
    let end = path.lastIndex { $0 != "/" }
    self.path = end.map { String(path[...$0]) } ?? path
  }

  struct DirectoryError: Error, Equatable, CustomStringConvertible {
    let description: String
  }

  var configurationFile: String { file("config.toml") }
  var databaseFile: String { file("token-server.db") }
  /// See `WakePipe`.
  var wakePipeFile: String { file("wake.pipe") }
  var lockFile: String { file("lock") }

  /// - Parameter name: relative to the directory, or absolute.
  func file(_ name: String) -> String { name.hasPrefix("/") ? name : path + "/" + name }

  /// An absolute path, for a program with another working folder.
  func absoluteFile(_ name: String) -> String {
    URL(filePath: file(name)).standardizedFileURL.path(percentEncoded: false)
  }

  func configuration() throws -> ServerConfiguration {
    try ConfigurationFile.parse(String(decoding: read(configurationFile), as: UTF8.self))
  }

  /// Opens the database that the configuration names, and creates or updates its tables.
  /// - Parameter isNew: whether the database file is a new one, which is empty.
  /// - Throws: `StorageUnavailableError` only if PostgreSQL cannot be used.
  func openStore(_ database: ServerConfiguration.Database?, isNew: Bool = false) async throws -> Store {
    if let database {
      let store = try Store(PostgreSQLAddress(database.url), connections: database.connections)
      do { try await store.measureClock(.system) } catch {
        store.close()
        throw error
      }
      return store
    }
    if access(databaseFile, F_OK) != 0 {
      guard errno == ENOENT else { throw Self.failure("cannot open the database \(databaseFile)") }
      throw DirectoryError(
        description: "there is no database in \(path): restore it, or create a new server with \"token-server init\"")
    }
    // SQLite takes an empty file for a new database.
    let size = try? FileManager.default.attributesOfItem(atPath: databaseFile)[.size] as? Int
    guard isNew || size != 0 else {
      throw DirectoryError(
        description: "\(databaseFile) is empty: restore it, or create a new server with \"token-server init\"")
    }
    do { return try Store(path: databaseFile) } catch let error as StorageUnavailableError {
      throw DirectoryError(description: "cannot open the database \(databaseFile): \(error)")
    } catch {
      throw DirectoryError(description: "cannot open the database \(databaseFile): \(error); restore it from a backup")
    }
  }

  func read(_ path: String) throws -> [UInt8] {
    if access(self.path, F_OK) != 0, errno == ENOENT {
      throw DirectoryError(description: "there is no server in \(self.path); create one with \"token-server init\"")
    }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Self.failure("cannot read \(path)") }
    defer { close(descriptor) }
    var (bytes, chunk): ([UInt8], [UInt8]) = ([], [UInt8](repeating: 0, count: 65_536))
    while true {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw Self.failure("cannot read \(path)") }
      if count == 0 { return bytes }
      bytes += chunk[..<count]
    }
  }

  /// An error of a system call, with what to do if it is one of permissions.
  private static func failure(_ what: String) -> DirectoryError {
    let code = errno
    let reason = String(cString: strerror(code))
    let remedy =
      code == EACCES || code == EPERM
      ? "; run the command as the user of the server, with the package: runuser -u token-server -- token-server …" : ""
    return DirectoryError(description: "\(what): \(reason)\(remedy)")
  }

  /// Creates a new file with the given mode and makes it durable; leaves none if that fails.
  static func write(_ bytes: [UInt8], to path: String, mode: mode_t = 0o600) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
    guard descriptor >= 0 else {
      throw DirectoryError(description: "cannot create \(path): \(String(cString: strerror(errno)))")
    }
    defer { close(descriptor) }
    do { try fill(descriptor, with: bytes, path) } catch {
      unlink(path)
      throw error
    }
  }

  private static func fill(_ descriptor: Int32, with bytes: [UInt8], _ path: String) throws {
    guard writeAll(bytes, to: descriptor) else {
      throw DirectoryError(description: "cannot write \(path): \(String(cString: strerror(errno)))")
    }
    guard fsync(descriptor) == 0 else { throw DirectoryError(description: "cannot write \(path) durably") }
  }

  /// - Returns: false after an error, which `errno` names.
  static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress! + written, bytes.count - written) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return false }
      written += count
    }
    return true
  }

  /// Takes the lock of the directory: two servers on one database would each notify only the devices connected to it.
  /// - Returns: a descriptor that holds the lock until the process ends.
  func lockForServing() throws -> Int32 {
    let descriptor = open(lockFile, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.failure("cannot open \(lockFile)") }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      close(descriptor)
      throw DirectoryError(description: "a server is already running in \(path)")
    }
    return descriptor
  }
}
