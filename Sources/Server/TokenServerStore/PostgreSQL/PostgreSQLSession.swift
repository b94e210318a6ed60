// SPDX-License-Identifier: Apache-2.0
import Glibc
import Synchronization
import TokenServerCore

/// A connection that is opened at the first transaction, and again after it was lost. For one thread.
final class PostgreSQLSession {
  private let address: PostgreSQLAddress
  private let state: State
  private var connection: PostgreSQLConnection? {
    didSet {
      state.open.store(connection != nil, ordering: .relaxed)
      if oldValue != nil, connection == nil { ServerMetrics.countDatabaseConnectionFailure() }
    }
  }

  /// What other threads may know of a session.
  final class State: Sendable {
    fileprivate let open = Atomic(false)
    fileprivate let used = Atomic(false)

    /// Whether there is a connection.
    var isOpen: Bool { open.load(ordering: .relaxed) }
    /// Whether a transaction runs, or waits for a connection to be opened.
    var isUsed: Bool { used.load(ordering: .relaxed) }
  }

  init(_ address: PostgreSQLAddress, _ state: State = State()) {
    self.address = address
    self.state = state
  }

  enum Access {
    case read, write
    /// One statement, which the database commits by itself.
    case statement

    /// The statement that begins a transaction.
    fileprivate var beginning: String? {
      switch self {
      case .read: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
      case .write: "BEGIN ISOLATION LEVEL SERIALIZABLE"
      case .statement: nil
      }
    }
  }

  /// The maximum mean pause before a change is repeated after a conflict. Not longer: a change that has waited is as
  /// likely to conflict again with new ones, and PostgreSQL does not cancel it for the same ones twice.
  private static let longestPause = Duration.milliseconds(10)

  /// Runs `body` in a transaction, and commits it. Repeats it after a conflict; once if the tables were changed since
  /// its statements were prepared; and once on a new connection if the connection was lost before the commit, or is to
  /// a standby, which changes nothing. If it is lost during the commit, nobody knows whether the transaction is
  /// committed: the caller gets an error, and the client that repeats its request gets the stored reply. A single
  /// statement is repeated also then.
  /// - Parameter patience: for all repetitions.
  func transaction<Value>(
    _ access: Access, within patience: Duration, _ body: (any SQLTransaction) throws -> Value
  ) throws -> Value {
    state.used.store(true, ordering: .relaxed)
    defer { state.used.store(false, ordering: .relaxed) }
    let deadline = ContinuousClock.now + patience
    var mayReconnect = true
    var mayPrepare = true
    var pause = Duration.milliseconds(1)
    while true {
      var isCommitting = false
      do {
        let connection = try current()
        if let beginning = access.beginning { try connection.begin(beginning) }
        let value = try body(PostgreSQLTransaction(connection: connection, isSerializable: access == .write))
        switch access {
        case .read: connection.endReading()
        case .write:
          isCommitting = true
          try connection.commit()
        case .statement: break
        }
        return value
      } catch let error as PostgreSQLError {
        let isStandby =
          error.isReadOnly || access == .write && connection?.isInTransaction == false && error.isUnsupported
        // Another server of the address may be the primary one by now.
        if isStandby { connection = nil } else { rollBack() }
        if error.isConflict { ServerMetrics.countDatabaseConflict() }
        if error.isConflict, ContinuousClock.now < deadline {
          usleep(UInt32(clamping: (pause * Double.random(in: 0.5..<1.5)).microseconds))
          pause = min(pause * 2, Self.longestPause)
        } else if error.isUnsupported, let connection, mayPrepare {
          mayPrepare = false
          try? connection.forgetStatements()
        } else if error.isUnavailable || isStandby, connection == nil, !isCommitting, mayReconnect {
          mayReconnect = false
        } else {
          throw isStandby ? error.unavailable : error.asStorageError
        }
      } catch {
        rollBack()
        throw error
      }
    }
  }

  private func current() throws -> PostgreSQLConnection {
    if let connection, !connection.isLost { return connection }
    connection = nil
    do {
      let new = try PostgreSQLConnection(to: address)
      connection = new
      return new
    } catch {
      ServerMetrics.countDatabaseConnectionFailure()
      throw error
    }
  }

  /// Ends the transaction; drops the connection if that fails.
  private func rollBack() {
    guard let connection, !connection.isLost else { return self.connection = nil }
    do { try connection.rollBack() } catch { self.connection = nil }
  }
}

extension Duration {
  fileprivate var microseconds: Int64 {
    components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
  }
}
