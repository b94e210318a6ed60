// SPDX-License-Identifier: Apache-2.0
import Foundation
import Synchronization

/// A token server that is a JSON file: tokens and the portal read and replace it.
struct FileServer: Sendable {
  struct Contents: Codable, Equatable {
    struct Request: Codable, Equatable {
      let id: String
      let message: String
    }

    /// Pending requests by user. A user without a member has no token.
    var pending: [String: [Request]] = [:]
    /// "approved" or "denied", by request.
    var answers: [String: String] = [:]
  }

  private static let lock = Mutex(())

  let path: String

  func read() throws -> Contents {
    try JSONDecoder().decode(Contents.self, from: try Data(contentsOf: URL(fileURLWithPath: path)))
  }

  /// From now on the server is not reachable.
  func damage() throws {
    try Self.lock.withLock { _ in try Data("x".utf8).write(to: URL(fileURLWithPath: path), options: .atomic) }
  }

  /// Changes the contents: no other change happens at the same time.
  func change(_ body: (inout Contents) throws -> Void) throws {
    try Self.lock.withLock { _ in
      var contents = FileManager.default.fileExists(atPath: path) ? try read() : Contents()
      try body(&contents)
      try JSONEncoder().encode(contents).write(to: URL(fileURLWithPath: path), options: .atomic)
    }
  }
}
