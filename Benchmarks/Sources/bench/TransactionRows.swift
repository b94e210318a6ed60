// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol

/// Transactions from a portal's request to the receipt of the answer. The devices do everything that a token does:
/// receive the hint from the stream, read the list with the message, decrypt, encrypt and answer; the portal receives
/// its callback.
final class TransactionRows {
  /// More than have an open request at the same time, because few users have two; and more than the server keeps keys
  /// loaded for, because most users were not among the last ones.
  private static let deviceCount = 1000
  private static let portalConnections = 16
  /// The number of concurrent transactions that saturates the server.
  static let abreast = 32
  private static let saturatedSeconds = 15.0
  /// The goal, per second.
  private static let wantedRate = 500.0
  /// A rate that leaves the server headroom.
  private static let lightRate = 100.0
  private static let offeredSeconds = 15.0
  /// Seconds to wait for missing answers at the end.
  private static let patience = 20.0

  private let server: TokenServer
  private let site: Site
  private let callbacks: CallbackReceiver
  private let devices: [AnsweringDevice]
  private let portals: [Connection]
  private var asked = 0
  /// When each transaction began, and what has arrived so far: the portal's response or the receipt, in either order.
  private var begun: [String: Instant] = [:]
  private var receipts: [String: Instant] = [:]
  private var latencies: [Double] = []

  static func measure(on stage: Stage) throws -> [Row] {
    let server = try TokenServer(on: stage, named: "transaction-server")
    defer { server.end() }
    let measurement = try TransactionRows(server)
    defer { measurement.hangUp() }
    let saturation = try measurement.run(for: saturatedSeconds, .abreast(abreast))
    return try saturated(saturation) + measurement.offer(perSecond: lightRate, isGoal: false)
      + measurement.offerBelow(saturation) + measurement.offer(perSecond: wantedRate, isGoal: true)
  }

  /// The load at which the server is saturated, and one at 70 % of its rate.
  static func saturation(of server: TokenServer) throws -> (saturation: Load, below: Load) {
    let measurement = try TransactionRows(server)
    defer { measurement.hangUp() }
    let saturation = try measurement.run(for: saturatedSeconds, .abreast(abreast))
    return (saturation, try measurement.run(for: offeredSeconds, .perSecond(0.7 * saturation.perSecond)))
  }

  /// The load at which the server is saturated, of which `observer`, a program, sees a part.
  static func saturated(_ server: TokenServer, observedBy observer: () throws -> Child) throws -> Load {
    let measurement = try TransactionRows(server)
    let program = try observer()
    defer { program.end() }
    return try measurement.run(for: saturatedSeconds, .abreast(abreast))
  }

  private init(_ server: TokenServer) throws {
    self.server = server
    let site = Site(server)
    self.site = site
    callbacks = CallbackReceiver(on: site.loop)
    devices = try server.enroll(Self.deviceCount, as: "user", at: site).map { AnsweringDevice($0, at: site) }
    portals = (0..<Self.portalConnections).map { _ in Connection(to: site) }
    for device in devices {
      device.onReceipt = { [unowned self] transaction in
        receipts[transaction] = .now
        conclude(transaction)
      }
    }
    site.loop.run(for: 2)
    try site.requireNoFailures()
  }

  private func hangUp() {
    for device in devices { device.hangUp() }
    for portal in portals { portal.hangUp() }
  }

  /// - Parameter moment: the scheduled time, which may be in the past: the delay counts.
  private func ask(at moment: Instant) {
    let device = devices[asked % devices.count].enrolled
    let portal = portals[asked % portals.count]
    asked += 1
    portal.send(site.ask(device.user, on: device.device.clientID, callback: callbacks.url)) { [unowned self] response in
      guard let transaction = site.transaction(in: response) else { return }
      begun[transaction] = moment
      conclude(transaction)
    }
  }

  private func conclude(_ transaction: String) {
    guard let began = begun[transaction], let ended = receipts[transaction] else { return }
    begun[transaction] = nil
    receipts[transaction] = nil
    latencies.append(ended - began)
  }

  private static func saturated(_ load: Load) -> [Row] {
    [
      Row(
        "server, \(abreast) transactions always under way",
        "\(load.perSecond.text(0)) answered per second; \(load.latency)"),
      Row("  processor", load.shares), load.each, Row("  memory", load.memory),
      Row("  database for each", load.growth),
    ]
  }

  private func offerBelow(_ saturation: Load) throws -> [Row] {
    let load = try run(for: Self.offeredSeconds, .perSecond(0.7 * saturation.perSecond))
    return [
      Row(
        "server, 70 % of that rate", "\(load.perSecond.text(0)) answered per second; \(load.latency)",
        goal: "p99 < 100 ms", met: load.unanswered == 0 && load.p99 < 0.1)
    ]
  }

  private func offer(perSecond rate: Double, isGoal: Bool) throws -> [Row] {
    let load = try run(for: Self.offeredSeconds, .perSecond(rate))
    let (what, answered) = (
      "server, \(rate.text(0)) transactions begun per second", "\(load.perSecond.text(0)) answered per second"
    )
    guard isGoal else {
      return [
        Row(what, "\(answered); \(load.latency)"), Row("  processor", load.shares), load.each,
      ]
    }
    return [
      Row(what, answered, goal: rate.text(0), met: load.perSecond >= 0.99 * rate),
      Row("  created to answered", load.latency, goal: "p99 < 100 ms", met: load.unanswered == 0 && load.p99 < 0.1),
      Row("  processor", load.shares), load.each,
    ]
  }

  private enum Pace {
    /// The number of concurrent transactions.
    case abreast(Int)
    /// The rate of new transactions, whether or not the earlier ones are answered.
    case perSecond(Double)
  }

  struct Load {
    let perSecond: Double
    let latency: String
    let p99: Double
    let unanswered: Int
    let shares: String
    /// What limits the rate.
    let limit: String
    /// The processor time of each transaction.
    let each: Row
    /// Of each server.
    let memory: String
    /// By how much the database has grown for each transaction.
    let growth: String
  }

  private func run(for seconds: Double, _ pace: Pace) throws -> Load {
    asked = 0
    latencies = []
    let size = try server.databaseBytes()
    let (processor, began) = (ProcessorShares(of: server.processes), Instant.now)
    let deadline = began + seconds
    while Instant.now < deadline, !site.hasFailed {
      switch pace {
      case .abreast(let count):
        while asked - latencies.count < count { ask(at: .now) }
        site.loop.turn(until: deadline)
      case .perSecond(let rate):
        while began + Double(asked) / rate <= .now { ask(at: began + Double(asked) / rate) }
        site.loop.turn(until: min(deadline, began + Double(asked) / rate))
      }
    }
    let elapsed = Instant.now - began
    let answered = latencies.count
    let (shares, limit) = (processor.text, processor.limit)
    let each = Row(
      "  processor for each", processor.text(forEachOf: answered), goal: "≤ 2.5 ms server",
      met: processor.server(forEachOf: answered) <= 0.0025)
    // The slowest transactions are still open, and they count.
    site.loop.run(for: Self.patience) { latencies.count == asked || site.hasFailed }
    try site.requireNoFailures()
    let unanswered = asked - latencies.count
    let growth = try (server.databaseBytes() - size) / Double(max(1, asked)) / 1024
    let sample = Sample(latencies + Array(repeating: .infinity, count: unanswered))
    func milliseconds(_ share: Double) -> String {
      let value = sample.quantile(share)
      return value.isFinite ? (value * 1e3).text(0) : "> \((Self.patience * 1e3).text(0))"
    }
    return Load(
      perSecond: Double(answered) / elapsed,
      latency: "p50 \(milliseconds(0.5)) ms, p99 \(milliseconds(0.99)) ms, worst \(milliseconds(1)) ms",
      p99: sample.quantile(0.99), unanswered: unanswered,
      shares: shares, limit: limit, each: each, memory: server.processes.map(\.memory).joined(separator: "; "),
      growth: "\(growth.text(1)) KiB")
  }
}
