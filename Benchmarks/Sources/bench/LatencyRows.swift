// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol

/// The user's waiting time: from the server's hint to the LED, and from the released button to the server's receipt.
/// Both are ratios to curl making the same exchange with the same server in the same run: the list with the request's
/// message before the LED is blue, the answer before it is green.
///
/// The comparison uses curl's open connections, because the token's are open too. The time on a new connection is
/// listed separately. So is what the token must do and curl does not: the bench does it once in each round, with the
/// same code.
final class LatencyRows {
  private static let rounds = 15

  private let site: Site
  private let login: ApprovalRound
  private let device: EnrolledDevice
  private let portal: Connection
  private let events: Connection
  private let callbacks: CallbackReceiver
  private let curl: Curl
  private let storage: DurableFile
  /// When the second device last received a hint.
  private var hinted = Instant.now

  private var (toLED, toReceipt): ([Double], [Double]) = ([], [])
  /// The time by which a hint precedes the portal's response.
  private var leads: [Double] = []
  private var (fetches, newFetches): ([Double], [Double]) = ([], [])
  private var (answers, newAnswers): ([Double], [Double]) = ([], [])
  private var parts: [Parts] = []

  /// What one approval needs besides the two exchanges, in seconds.
  private struct Parts {
    var proof = 0.0
    var opening = 0.0
    var sealing = 0.0
    var commit = 0.0
    var receipt = 0.0
  }

  /// - Parameter isSplit: whether the token is two processes.
  static func measure(on stage: Stage, isSplit: Bool = false) throws -> [Row] {
    let server = try TokenServer(on: stage, named: isSplit ? "split-latency-server" : "latency-server")
    defer { server.end() }
    let token = try Token(on: stage, user: isSplit ? "pair" : "person", at: server, isSplit: isSplit)
    defer { token.end() }
    let measurement = try LatencyRows(stage, server, token)
    try measurement.site.requireNoFailures()
    // One round that does not count opens the connections and fills the caches of all programs.
    for round in 0...rounds {
      try measurement.round(counts: round > 0)
      try measurement.site.requireNoFailures()
    }
    return measurement.rows(of: isSplit ? "two processes, beside curl" : "token", goal: isSplit ? 1.7 : 1.5)
  }

  /// Seconds curl takes for one answer on an open connection, while a token is running.
  static func answerByCurl(on stage: Stage) throws -> Sample {
    let server = try TokenServer(on: stage, named: "answer-server")
    defer { server.end() }
    let token = try Token(on: stage, user: "neighbour", at: server)
    defer { token.end() }
    let measurement = try LatencyRows(stage, server, token)
    let answers = try (0...rounds).map { _ in try measurement.approveWithCurl(isNewConnection: false).answer }
    try measurement.site.requireNoFailures()
    return Sample(Array(answers.dropFirst()))
  }

  private init(_ stage: Stage, _ server: TokenServer, _ token: Token) throws {
    site = Site(server)
    device = try server.enroll(1, as: "beside", at: site)[0]
    portal = Connection(to: site)
    events = Connection(to: site)
    callbacks = CallbackReceiver(on: site.loop)
    login = try ApprovalRound(token, at: server, site, callback: callbacks.url)
    curl = Curl(stage: stage, authority: server.authority, origin: server.issuer)
    storage = try DurableFile(on: stage)
    events.stream(device.device.eventStream) { [unowned self] bytes in
      if String(decoding: bytes, as: UTF8.self).contains("event: request\n") { hinted = .now }
    }
    site.loop.run(for: 1)
  }

  private func round(counts: Bool) throws {
    let times = try login.run()
    let (fetch, answer, parts) = try approveWithCurl(isNewConnection: false)
    let (newFetch, newAnswer, _) = try approveWithCurl(isNewConnection: true)
    guard counts else { return }
    toLED.append(times.toLED)
    toReceipt.append(times.toGreen)
    fetches.append(fetch)
    answers.append(answer)
    newFetches.append(newFetch)
    newAnswers.append(newAnswer)
    self.parts.append(parts)
  }

  private func ask(_ user: String, on clientID: String) throws -> String {
    let response = portal.exchange(site.ask(user, on: clientID, callback: callbacks.url))
    guard let transaction = site.transaction(in: response) else { throw BenchError("the portal was refused") }
    return transaction
  }

  /// - Returns: the result, and the seconds.
  private func timed<Value>(_ body: () throws -> Value) rethrows -> (Value, Double) {
    let began = Instant.now
    let value = try body()
    return (value, .now - began)
  }

  /// Seconds curl takes for the list with the message, and for the answer.
  private func approveWithCurl(isNewConnection: Bool) throws -> (fetch: Double, answer: Double, Parts) {
    let formerHint = hinted
    let transaction = try ask(device.user, on: device.device.clientID)
    let asked = Instant.now
    site.loop.run(for: 2) { hinted != formerHint }
    guard hinted != formerHint else { throw BenchError("no hint within 2 s") }
    leads.append(asked - hinted)

    let path = "/device/v1/requests/\(transaction)/answers"
    func transfer(_ method: String, _ path: String, _ fields: [(String, String)] = [], _ body: [UInt8]? = nil)
      -> Curl.Transfer
    {
      Curl.Transfer(path, device.device.proof(method, path) + fields, body: body)
    }
    /// - Returns: the last transfer, on a connection that another transfer opened, unless `isNewConnection`.
    func run(_ last: Curl.Transfer) throws -> Curl.Timed {
      let done = try curl.run((isNewConnection ? [] : [transfer("GET", "/device/v1/configuration")]) + [last])
      guard let timed = done.last, timed.isOnNewConnection == isNewConnection else {
        throw BenchError("curl chose another connection")
      }
      return timed
    }
    let listed = try run(transfer("GET", Device.list))
    let list = try JSON.decode(PendingList.self, from: listed.body)
    guard let message = list.requests.first(where: { $0.transactionID == transaction })?.sealedMessage else {
      throw BenchError("the list has no message")
    }
    var parts = Parts()
    let (request, body, proof): (EnrolledDevice.Opened, [UInt8], [(String, String)])
    (request, parts.opening) = try timed { try device.open(message) }
    (body, parts.sealing) = try timed { try device.approval(of: request) }
    (proof, parts.proof) = timed { device.device.proof("POST", path) }
    let answered = try run(Curl.Transfer(path, proof + [("Idempotency-Key", Random.uuid())], body: body))
    (_, parts.receipt) = try timed { try device.openReceipt(in: answered.body) }
    (_, parts.commit) = try timed { try storage.write() }
    return (listed.seconds, answered.seconds, parts)
  }

  /// - Parameter goal: the time as a multiple of curl's.
  private func rows(of token: String, goal: Double) -> [Row] {
    let lead = Sample(leads).median
    let led = Sample(toLED.map { $0 + lead })
    func part(_ time: KeyPath<Parts, Double>) -> Sample { Sample(parts.map { $0[keyPath: time] }) }
    let (proof, opening) = (part(\.proof), part(\.opening))
    return [
      row("\(token): hint to LED", led, to: Sample(fetches), goal),
      Row("  the same exchange by curl", Sample(fetches).inMilliseconds),
      Row("  a signature, to open the message", with: [proof, opening], Sample(fetches), led),
      Row("  on a new connection", Sample(newFetches).inMilliseconds),
      row("\(token): hold to receipt", Sample(toReceipt), to: Sample(answers), goal),
      Row("  the same exchange by curl", Sample(answers).inMilliseconds),
      Row(
        "  a signature, a commit, to seal the answer, to open the receipt",
        with: [proof, part(\.commit), part(\.sealing), part(\.receipt)], Sample(answers), Sample(toReceipt)),
      Row("  on a new connection", Sample(newAnswers).inMilliseconds),
    ]
  }

  private func row(_ what: String, _ token: Sample, to curl: Sample, _ goal: Double) -> Row {
    let ratio = token.median / curl.median
    return Row(
      what, "\(ratio.text(2)) × curl: \(token.inMilliseconds)", goal: "≤ \(goal.text(1)) × curl", met: ratio <= goal)
  }
}
