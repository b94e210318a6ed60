// SPDX-License-Identifier: Apache-2.0
import CPostgreSQL
import Glibc
import Threads
import TokenServerCore

/// One connection to a database, for one thread at a time.
final class PostgreSQLConnection {
  /// For a statement and its answer: longer than `statement_timeout`, so that a statement that the database ends is not
  /// repeated on another connection.
  static let timeLimit = Duration.seconds(17)

  private let connection: OpaquePointer
  /// The names of prepared statements, by text and types of parameters.
  private var prepared: [Statement: String] = [:]
  /// The statement that begins the transaction; it is sent together with the first statement in it.
  private var beginning: String?
  /// Whether the result of the last request was not waited for.
  private var hasUnreadResult = false
  /// Whether requests and results are out of step.
  private var isBroken = false

  private struct Statement: Hashable {
    let text: String
    /// Numbers of PostgreSQL's types.
    let types: [Oid]
  }

  /// Connects within 5 seconds for each address of the host, or the `connect_timeout` of the URI.
  init(to address: PostgreSQLAddress) throws {
    guard let connection = Self.withParameters(of: address, { PQconnectdbParams($0, $1, 1) }) else {
      throw PostgreSQLError(state: "", message: "no memory for a connection")
    }
    self.connection = connection
    guard PQstatus(connection) == CONNECTION_OK else { throw lost() }
    PQsetnonblocking(connection, 1)
    PQsetNoticeProcessor(connection, { _, _ in }, nil)
    // A database whose default is not to wait for the disk would lose counted attempts at a power loss.
    try run("SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'")
    // For single statements: serializable ones would conflict.
    try run("SET default_transaction_isolation = 'read committed'")
    try run("SET statement_timeout = '15s'")
    try run("SET idle_in_transaction_session_timeout = '30s'")
  }

  deinit { PQfinish(connection) }

  /// Whether the database is out of reach, or does not accept connections yet, such as while it recovers. False if it
  /// refuses this program's, such as for a wrong password. Takes as long as `init`.
  static func isUnavailable(at address: PostgreSQLAddress) -> Bool {
    let response = withParameters(of: address) { PQpingParams($0, $1, 1) }
    return response == PQPING_NO_RESPONSE || response == PQPING_REJECT
  }

  /// Calls `body` with the names and the values of the parameters of a connection.
  private static func withParameters<Result>(
    of address: PostgreSQLAddress,
    _ body: (UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<UnsafePointer<CChar>?>) -> Result
  ) -> Result {
    // The URI replaces what comes before it.
    let parameters = [
      ("connect_timeout", "\(address.connectTimeout)"), ("tcp_user_timeout", "15000"), ("keepalives_idle", "30"),
      ("keepalives_interval", "10"),
      ("keepalives_count", "3"), ("fallback_application_name", "token-server"), ("dbname", address.uri),
      ("client_encoding", "UTF8"),
    ]
    return withCStrings(parameters.map(\.0), parameters.map(\.1), body)
  }

  /// Whether it can no longer be used: it has failed, or the database did not answer in time.
  var isLost: Bool { isBroken || PQstatus(connection) != CONNECTION_OK }

  /// Whether a transaction has begun, and not ended.
  var isInTransaction: Bool { PQtransactionStatus(connection) != PQTRANS_IDLE }

  /// For poll(2); −1 if the connection is lost.
  var socket: Int32 { PQsocket(connection) }

  /// The version that the database reports.
  var serverVersion: String { PQparameterStatus(connection, "server_version").map { String(cString: $0) } ?? "" }

  /// Begins a transaction. An error is thrown here or by its first statement.
  func begin(_ statement: String) throws {
    try readResult()
    beginning = statement
  }

  func commit() throws {
    guard PQtransactionStatus(connection) != PQTRANS_INERROR else {
      throw PostgreSQLError(state: "25P02", message: "a statement has failed, and COMMIT would roll back")
    }
    // Without a statement in it, the transaction has not begun.
    if beginning == nil { try run("COMMIT") }
    beginning = nil
  }

  /// Ends a transaction that changes nothing, without waiting for the response. What it has read is valid if that
  /// fails; the connection is lost then.
  func endReading() {
    defer { beginning = nil }
    guard beginning == nil else { return }
    do {
      try send(until: ContinuousClock.now + Self.timeLimit) { send("COMMIT") }
      hasUnreadResult = true
    } catch { isBroken = true }
  }

  func rollBack() throws {
    if beginning == nil { try run("ROLLBACK") }
    beginning = nil
  }

  /// Runs one statement without parameters, outside a transaction.
  /// - Parameter limit: for the statement and its answer.
  @discardableResult
  func run(_ statement: String, within limit: Duration = PostgreSQLConnection.timeLimit) throws -> PostgreSQLResult {
    try result(within: limit) { send(statement) }
  }

  private func send(_ statement: String) -> Int32 {
    PQsendQueryParams(connection, statement, 0, nil, nil, nil, nil, 1)
  }

  /// Runs one statement; its text is prepared at the first use.
  /// - Parameter text: with a `?` for each parameter.
  func run(_ text: String, _ parameters: [SQLValue]) throws -> PostgreSQLResult {
    let statement = Statement(text: text, types: parameters.map(\.postgreSQLType))
    if let beginning, prepared[statement] == nil {
      try run(beginning)
      self.beginning = nil
    }
    let name = try name(of: statement)
    let values = try parameters.map { try $0.postgreSQLBytes() }
    let lengths = values.map { Int32($0?.count ?? 0) }
    let formats = [Int32](repeating: 1, count: values.count)
    return try withPointers(values) { pointers in
      func send() -> Int32 {
        PQsendQueryPrepared(connection, name, Int32(values.count), pointers, lengths, formats, 1)
      }
      guard let beginning else { return try result(of: send) }
      self.beginning = nil
      return try lastResult { self.send(beginning) == 1 ? send() : 0 }
    }
  }

  private func name(of statement: Statement) throws -> String {
    if let name = prepared[statement] { return name }
    let name = "s\(prepared.count)"
    _ = try result {
      PQsendPrepare(
        connection, name, Placeholders.numbered(statement.text), Int32(statement.types.count), statement.types)
    }
    prepared[statement] = name
    return name
  }

  /// Forgets the prepared statements. Outside a transaction.
  func forgetStatements() throws {
    try run("DEALLOCATE ALL")
    prepared = [:]
  }

  /// Waits for data from the database, and returns the payloads of notifications that have arrived.
  /// - Parameter wakeUp: a descriptor that ends the wait when it becomes readable.
  func notifications(within limit: Duration, wakeUp: Int32) throws -> [String] {
    var descriptors = [
      pollfd(fd: socket, events: Int16(POLLIN), revents: 0), pollfd(fd: wakeUp, events: Int16(POLLIN), revents: 0),
    ]
    poll(&descriptors, 2, limit.pollMilliseconds)
    guard PQconsumeInput(connection) == 1 else { throw lost() }
    var payloads: [String] = []
    while let notification = PQnotifies(connection) {
      defer { PQfreemem(notification) }
      payloads.append(notification.pointee.extra.map { String(cString: $0) } ?? "")
    }
    return payloads
  }

  /// Sends one request and waits for its result.
  private func result(
    within limit: Duration = PostgreSQLConnection.timeLimit, of request: () -> Int32
  ) throws -> PostgreSQLResult {
    let deadline = ContinuousClock.now + limit
    try readResult()
    try send(until: deadline, request)
    return try receive(until: deadline)
  }

  /// Waits for the result that was not waited for.
  private func readResult() throws {
    guard hasUnreadResult else { return }
    hasUnreadResult = false
    _ = try receive(until: ContinuousClock.now + Self.timeLimit)
  }

  /// Sends several requests at once, and waits for all their results.
  /// - Returns: the last result.
  /// - Throws: the first error; the requests after it have no effect.
  private func lastResult(of requests: () -> Int32) throws -> PostgreSQLResult {
    let deadline = ContinuousClock.now + Self.timeLimit
    try readResult()
    guard PQenterPipelineMode(connection) == 1 else { throw lost() }
    try send(until: deadline) { requests() == 1 ? PQpipelineSync(connection) : 0 }
    var (last, failure): (PostgreSQLResult?, PostgreSQLResult?)
    while true {
      guard let next = try next(until: deadline) else {
        // The end of the results of one request.
        guard !isLost else { throw lost() }
        continue
      }
      if next.isEndOfPipeline { break }
      if case .failure = next.outcome { failure = failure ?? next }
      last = next
    }
    guard PQexitPipelineMode(connection) == 1 else { throw lost() }
    return try checked(failure ?? last)
  }

  private func send(until deadline: ContinuousClock.Instant, _ request: () -> Int32) throws {
    guard request() == 1 else { throw lost() }
    while true {
      let left = PQflush(connection)
      guard left >= 0 else { throw lost() }
      if left == 0 { return }
      try wait(for: POLLIN | POLLOUT, until: deadline)
      guard PQconsumeInput(connection) == 1 else { throw lost() }
    }
  }

  /// The last result of one request.
  private func receive(until deadline: ContinuousClock.Instant) throws -> PostgreSQLResult {
    var last: PostgreSQLResult?
    while let next = try next(until: deadline) { last = next }
    return try checked(last)
  }

  /// - Returns: nil after the last result of a request.
  private func next(until deadline: ContinuousClock.Instant) throws -> PostgreSQLResult? {
    while PQisBusy(connection) == 1 {
      try wait(for: POLLIN, until: deadline)
      guard PQconsumeInput(connection) == 1 else { throw lost() }
    }
    return PQgetResult(connection).map(PostgreSQLResult.init)
  }

  private func checked(_ result: PostgreSQLResult?) throws -> PostgreSQLResult {
    guard let result else { throw lost() }
    if case .failure(let error) = result.outcome { throw error ?? lost() }
    return result
  }

  private func wait(for events: Int32, until deadline: ContinuousClock.Instant) throws {
    var descriptor = pollfd(fd: socket, events: Int16(events), revents: 0)
    let left = deadline - .now
    guard left > .zero else {
      isBroken = true
      throw PostgreSQLError(state: "", message: "the database does not answer")
    }
    poll(&descriptor, 1, left.pollMilliseconds)
  }

  private func lost() -> PostgreSQLError {
    let message = PQerrorMessage(connection).map { String(cString: $0) } ?? ""
    let line = message.split(separator: "\n").joined(separator: " ")
    return PostgreSQLError(state: "", message: line.isEmpty ? "the connection to the database is lost" : line)
  }
}

/// Calls `body` with two lists of C strings, each ended by nil.
private func withCStrings<Result>(
  _ first: [String], _ second: [String],
  _ body: (UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<UnsafePointer<CChar>?>) -> Result
) -> Result {
  let copies = [first, second].map { $0.map { strdup($0) } }
  defer { copies.joined().forEach { free($0) } }
  let lists = copies.map { $0.map { UnsafePointer($0) } + [nil] }
  return body(lists[0], lists[1])
}

/// Calls `body` with pointers to the bytes of each value; nil for nil.
private func withPointers<Result>(
  _ values: [[UInt8]?], _ body: ([UnsafePointer<CChar>?]) throws -> Result
) rethrows -> Result {
  // One buffer for all. Its last byte gives an empty value an address, which NULL has not.
  let all = Array(values.compactMap(\.self).joined()) + [0]
  return try all.withUnsafeBytes { buffer in
    var offset = 0
    let start = buffer.bindMemory(to: CChar.self).baseAddress
    return try body(
      values.map { value in
        guard let value, let start else { return nil }
        defer { offset += value.count }
        return start + offset
      })
  }
}
