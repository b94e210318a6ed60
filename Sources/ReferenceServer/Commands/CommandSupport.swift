import ArgumentParser
import Foundation
import GRDB
import ReferenceProtocol

/// What all commands take.
struct CommonOptions: ParsableArguments {
  @Option(name: .shortAndLong, help: "The server's directory.")
  var directory = "token-server.d"

  @Flag(help: "Print JSON.")
  var json = false

  var serverDirectory: ServerDirectory { ServerDirectory(path: directory) }

  /// One fact as a line for people, or as one JSON value.
  func print(_ value: some Encodable, _ text: @autoclosure () -> String) {
    guard !json else { return Swift.print(String(decoding: JSON.encode(value), as: UTF8.self)) }
    // Line by line: devices and portals chose some of what is in them.
    Swift.print(
      text().split(separator: "\n", omittingEmptySubsequences: false).map { String($0).printable() }
        .joined(separator: "\n"))
  }

  func open() throws -> AdminSession {
    let directory = serverDirectory
    let peppered = Peppered(try directory.pepper())
    guard FileManager.default.fileExists(atPath: directory.databaseFile) else {
      throw CommandFailure("there is no database in \(directory.path)")
    }
    return AdminSession(
      store: try Store(path: directory.databaseFile), peppered: peppered, directory: directory)
  }
}

/// A command at work on the database, beside a server that may be running.
struct AdminSession {
  let store: Store
  let peppered: Peppered
  let directory: ServerDirectory

  /// Makes a change and lets the running server tell the devices.
  func change(_ body: @escaping @Sendable (Database) throws -> Effects) async throws {
    try await store.write { try $0.post(body($0)) }
    Doorbell(path: directory.doorbellFile).ring()
  }
}

/// A line on standard error; the command goes on.
func complain(_ line: String) { FileHandle.standardError.write(Data("\(line.printable())\n".utf8)) }

/// Ends a command with a message and exit status 1.
struct CommandFailure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// A time for people: UTC, to the second.
func moment(_ milliseconds: Int64) -> String {
  Date(timeIntervalSince1970: Double(milliseconds / 1000)).formatted(.iso8601)
}

/// A name in a URL path and in logs: something to see, nothing to trip over.
func validated(_ name: String, as what: String) throws(ValidationError) -> String {
  let isPlain = name.unicodeScalars.allSatisfy { $0.value > 0x20 && $0.value != 0x7F }
  guard !name.isEmpty, name.utf8.count <= 128, isPlain else {
    throw ValidationError("\(what) must have 1 to 128 bytes without spaces or control characters")
  }
  return name
}
