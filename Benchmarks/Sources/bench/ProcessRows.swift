// SPDX-License-Identifier: Apache-2.0

/// What the separation into two processes costs: the user's waiting time in comparison with one process at the same
/// server, in alternating rounds; the memory and wake-ups of both processes together; and the user's waiting time in
/// comparison with curl.
enum ProcessRows {
  private static let rounds = 15

  static func measure(on stage: Stage) throws -> [Row] {
    let server = try TokenServer(on: stage, named: "process-server")
    defer { server.end() }
    let (one, two) = (
      try Token(on: stage, user: "one", at: server), try Token(on: stage, user: "two", at: server, isSplit: true)
    )
    defer { for token in [one, two] { token.end() } }
    let site = Site(server)
    let callbacks = CallbackReceiver(on: site.loop)
    let logins = try [one, two].map { try ApprovalRound($0, at: server, site, callback: callbacks.url) }
    var times: [[ApprovalRound.Times]] = [[], []]
    // One round that does not count opens the connections and fills the caches of all programs.
    for round in 0...rounds {
      for (index, login) in logins.enumerated() {
        let measured = try login.run()
        if round > 0 { times[index].append(measured) }
      }
      try site.requireNoFailures()
    }
    return try [
      row("hint to LED", times.map { $0.map(\.toLED) }), row("hold to receipt", times.map { $0.map(\.toGreen) }),
    ] + idleRows(two) + LatencyRows.measure(on: stage, isSplit: true)
  }

  private static func row(_ what: String, _ seconds: [[Double]]) -> Row {
    let (one, two) = (Sample(seconds[0]), Sample(seconds[1]))
    let ratio = two.median / one.median
    return Row(
      "two processes: \(what)",
      "\(ratio.text(2)) × one process: \(two.inMilliseconds), one process \(one.inMilliseconds)",
      goal: "≤ 1.15 × one process", met: ratio <= 1.15)
  }

  private static func idleRows(_ token: Token) -> [Row] {
    guard let network = token.networkReadings else { return [] }
    let readings = [token.readings, network]
    pause(seconds: IdleRows.settling)
    let before = readings.map(\.wakeUps)
    pause(seconds: IdleRows.seconds)
    let wakeUps = zip(readings, before).reduce(0) { $0 + $1.0.wakeUps(since: $1.1) }
    let rate = Double(wakeUps) / IdleRows.seconds
    let memory = readings.compactMap(\.unreclaimable)
    return [
      Row(
        "two processes: idle, wake-ups of both", "\(rate.text(2)) per second", goal: "≤ 0.5 per second",
        met: rate <= 0.5),
      Row(
        "two processes: memory of both that cannot be reclaimed",
        "\(memory.reduce(0, +).text(1)) MiB: device \(memory.first?.text(1) ?? "?"), network \(memory.last?.text(1) ?? "?")",
        goal: "≤ 6 MiB", met: memory.count == 2 && memory.reduce(0, +) <= 6),
    ]
  }
}
