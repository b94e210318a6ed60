// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import JSONValues
import Synchronization

/// A token of the bench with its user, and what the portal asks that user.
actor BenchToken {
  nonisolated let user: String
  nonisolated let program: TokenProgram
  nonisolated let button: HeldButton
  private nonisolated let index: Int
  private nonisolated let feed: Feed
  private var portal: Portal?
  /// The newest device of the user at the token server; nil if none is enrolled.
  private var device: String?
  private var types: [String] = []
  /// What a command waits for at the panel.
  private var task: Task<Void, Never>?
  private var requests = OpenRequests()
  /// The last start or end of a program.
  private var changing: Task<Void, any Error>?

  init(_ index: Int, of user: String, _ program: TokenProgram, feed: Feed) {
    (self.index, self.user, self.program, self.feed) = (index, user, program, feed)
    button = HeldButton(token: program) { button, ending, held in
      feed.publish(
        .user,
        .object([
          "button": .text(button.rawValue), "ending": .text(ending.rawValue),
          "held_ms": .integer(held.microseconds / 1000),
        ]), of: index)
    }
  }

  func publish(_ kind: Feed.Kind, _ value: JSONValue) { feed.publish(kind, value, of: index) }

  /// Shows the board and the events from now on.
  nonisolated func follow() {
    let (feed, index) = (feed, index)
    let meaning = Mutex(String?.none)
    program.follow(
      .followBoard,
      ended: {
        meaning.withLock { $0 = nil }
        feed.publish(.board, .null, of: index)
      },
      take: { state in
        feed.publish(.board, state, of: index)
        let former = meaning.withLock { former in
          defer { former = state["led"]?["meaning"]?.text }
          return former
        }
        if let led = state["led"], led["meaning"]?.text != former {
          feed.publish(.led, state.reading(led), of: index)
        }
        return true
      })
    program.follow(.events(follow: true)) {
      feed.publish(.token, $0, of: index)
      return true
    }
  }

  /// Enrolls the user and types the PIN, so that the page begins with a token that can approve. After an error the
  /// token does not run.
  func enroll(_ uri: String, pin: String) async throws {
    var options = EnrollmentOptions(uri: uri)
    options.name = user
    let program = program
    async let enrolled = program.call(.enroll(options), within: nil)
    do {
      for meaning in ["new PIN wanted", "new PIN wanted, a second time"] {
        try await wait(.seconds(20), for: "the token should ask for a PIN") {
          let status = try await program.call(.status)
          return status["led"]?["meaning"]?.text == meaning && status["panel"]?["press_counts"]?.bool == true
        }
        _ = try await program.call(.simulate(.keys(pin.map(String.init) + ["enter"])))
      }
      _ = try await enrolled
      try await wait(.seconds(20), for: "the token should be connected") {
        try await program.call(.status)["servers"]?.list?.first?["connection"]?.text == "connected"
      }
    } catch {
      // Otherwise the call waits for the PIN, and this scope for the call.
      await program.stop()
      throw error
    }
  }

  /// - Parameter portal: which asks this user.
  func use(_ portal: Portal) async {
    self.portal = portal
    await findDevice()
  }

  /// Another enrollment is another device, or none is left. Without an answer, the former one is kept.
  private func findDevice() async {
    guard let portal else { return }
    do { device = try await portal.device(of: user) } catch { return await publishPlace() }
    types = if let device { await portal.types(of: user, on: device) } else { [] }
    await publishPlace()
  }

  func publishPlace() async {
    let (isRunning, hasNetwork) = (await program.isRunning, await program.isNetworkRunning)
    publish(
      .place,
      .object([
        "user": .text(user), "own": .bool(program.isOwn), "token": .bool(isRunning), "network": .bool(hasNetwork),
        "clock": .bool(program.hasClock), "clock_wrong": .bool(await program.isClockWrong),
        "enrolled": .bool(device != nil), "types": .list(types.map { .text($0) }), "waits": .bool(task != nil),
      ]))
  }

  // MARK: The portal

  /// The types that a page can start; those of the bench's own token server before anything is enrolled.
  var orderTypes: [String] { types.isEmpty ? PortalOrder.types : types }

  private var readyPortal: Portal {
    get throws {
      guard let portal else { throw BenchError("the bench is still starting") }
      return portal
    }
  }

  func apiDescription() async throws -> JSONValue { try await readyPortal.description() }

  /// Starts a request, and reads its result until it has ended.
  func ask(_ order: PortalOrder, by whom: String) async throws -> JSONValue {
    let portal = try readyPortal
    // The token may have been enrolled again by another program.
    await findDevice()
    guard let device else { throw BenchError("\(user) has no token: enroll one under \"Account\"") }
    let exchange = await portal.ask(
      user, on: device, type: order.type, message: order.message, digits: order.digits)
    let transaction = exchange.answer?["transaction_id"]?.text
    var entry = exchange.entry
    entry["action"] = .text("start")
    entry["by"] = .text(whom)
    entry["message"] = .text(order.message)
    entry["digits"] = order.digits.map { .text($0) } ?? .null
    if let transaction {
      entry["transaction"] = .text(transaction)
      entry["curl_result"] = .text(portal.resultCommand(transaction))
    }
    publish(.portal, .object(entry))
    if let transaction { watch(transaction, at: portal, for: exchange.answer?["time_to_live"]?.integer ?? 0) }
    return .object(["transaction": transaction.map { .text($0) } ?? .null])
  }

  func cancelRequest(_ transaction: String) async throws -> JSONValue {
    guard requests.contains(transaction) else { throw BenchError("that request is not open") }
    var entry = try await readyPortal.cancel(transaction).entry
    entry["action"] = .text("cancel")
    entry["transaction"] = .text(transaction)
    publish(.portal, .object(entry))
    return .object([:])
  }

  /// Reads the result until it is final. A request that expires can stay without a final result.
  private func watch(_ transaction: String, at portal: Portal, for milliseconds: Int64) {
    guard requests.insert(transaction) else { return }
    let schedule = ReadSchedule(from: .now, for: Self.watchTime(milliseconds))
    Task {
      var (former, reads) = (JSONValue.null, Int64(0))
      while requests.isWatched(transaction) {
        let found = await portal.result(of: transaction)
        reads += 1
        let answer = found.answer ?? .null
        if found.status == 200, answer != former {
          former = answer
          publish(found, transaction, reads)
        }
        guard let pause = schedule.pause(after: found.status, answer, now: .now) else {
          requests.remove(transaction)
          return await publishAudit(of: transaction)
        }
        try? await Task.sleep(for: pause)
      }
    }
  }

  /// Until after the end of a request, which is open for at most a day.
  static func watchTime(_ milliseconds: Int64) -> Duration {
    .milliseconds(min(max(milliseconds, 0), 86_400_000)) + .seconds(3)
  }

  private func publish(_ result: Portal.Exchange, _ transaction: String, _ reads: Int64) {
    var entry = result.entry
    entry["transaction"] = .text(transaction)
    entry["reads"] = .integer(reads)
    publish(.result, .object(entry))
  }

  /// The token writes the end of a request while its LED shows the outcome.
  private func publishAudit(of transaction: String) async {
    for _ in 1...8 {
      try? await Task.sleep(for: .milliseconds(500))
      let lines = (try? await program.auditLines())?.filter { $0["transaction"]?.text == transaction } ?? []
      guard lines.contains(where: { ["settled", "unconfirmed"].contains($0["kind"]?.text) }) else { continue }
      return publish(.audit, .object(["transaction": .text(transaction), "lines": .list(lines)]))
    }
  }

  // MARK: Faults and accounts

  /// Stops and starts programs one after the other: a second call waits for the first.
  func inTurn(_ fault: String, _ change: @escaping @Sendable (TokenProgram) async throws -> Void) async throws {
    guard program.isOwn else { throw BenchError("the bench has not started this token") }
    let (former, program) = (changing, program)
    let task = Task {
      _ = await former?.result
      publish(.fault, .object(["fault": .text(fault)]))
      try await change(program)
    }
    changing = task
    defer { Task { await publishPlace() } }
    try await task.value
  }

  /// Starts a command that waits for the user at the panel; one at a time.
  func begin(_ name: String, _ request: ControlRequest) async throws {
    guard task == nil else { throw BenchError("another command waits for the user at the panel") }
    publish(.account, .object(["step": .text("started"), "command": .text(name)]))
    task = Task {
      let entry: [String: JSONValue]
      do { entry = ["step": .text("done"), "answer": try await program.call(request, within: nil)] } catch {
        entry = ["step": .text("failed"), "error": .text("\(error)")]
      }
      await finish(name, entry)
    }
    await publishPlace()
  }

  private func finish(_ name: String, _ entry: [String: JSONValue]) async {
    task = nil
    await findDevice()
    publish(.account, .object(entry.merging(["command": .text(name)]) { $1 }))
    await publishPlace()
  }

  func end() async {
    task?.cancel()
    await program.stop()
  }

  /// The user's account on the token, or its only one.
  func account() async throws -> String {
    guard let name = try await accountName() else { throw BenchError("the token has no account of \(user)") }
    return name
  }

  private func accountName() async throws -> String? {
    let names = try await program.accountNames()
    return names.contains(user) ? user : names.count == 1 ? names[0] : nil
  }

  func authenticators() async throws -> JSONValue {
    guard let account = try await accountName() else { return .object(["authenticators": .list([])]) }
    return try await program.call(.authenticators(account: account), within: nil)
  }
}

extension JSONValue {
  /// What a step of the page has of a state of the board.
  fileprivate func reading(_ led: JSONValue) -> JSONValue {
    .object([
      "meaning": led["meaning"] ?? .null, "color": led["color"] ?? .null, "at_ms": self["at_ms"] ?? .null,
    ])
  }
}

extension Portal.Exchange {
  /// For the page.
  fileprivate var entry: [String: JSONValue] {
    var entry: [String: JSONValue] = [
      "method": .text(method), "path": .text(path), "curl": .text(curl),
      "form": .list(form.map { .list([.text($0.name), .text($0.value)]) }), "answer": answer ?? .null,
      "duration_us": .integer(duration.microseconds),
    ]
    if let status { entry["status"] = .integer(Int64(status)) }
    if let error { entry["error"] = .text(error) }
    return entry
  }
}

extension Duration {
  fileprivate var microseconds: Int64 { components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000 }
}
