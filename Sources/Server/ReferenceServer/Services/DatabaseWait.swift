// SPDX-License-Identifier: Apache-2.0
import Logging
import TokenServerStore

/// The wait of a server that starts for a database that cannot be reached, or does not accept connections yet: after a
/// power failure, the database may start later than the server.
struct DatabaseWait {
  private static let shortestPause = Duration.seconds(1)
  private static let longestPause = Duration.seconds(8)

  let log: Logger
  let sleep: @Sendable (Duration) async throws -> Void

  /// Repeats `open` until the database can be used.
  /// - Throws: any other error of `open`; that of `sleep`.
  func store(_ open: @Sendable () async throws -> Store) async throws -> Store {
    var pause = Self.shortestPause
    var reason: String?
    while true {
      do {
        let store = try await open()
        if reason != nil { log.notice("the database can be used") }
        return store
      } catch let error as StorageUnavailableError where error.mayPass {
        if reason != error.reason {
          log.warning("the database cannot be used yet, and the server waits for it: \(error)")
        }
        reason = error.reason
      }
      try await sleep(pause)
      pause = min(pause * 2, Self.longestPause)
    }
  }
}
