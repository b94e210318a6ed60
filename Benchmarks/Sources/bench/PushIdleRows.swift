// SPDX-License-Identifier: Apache-2.0
/// The cost of an idle push token: memory by the number of its accounts, and the polling rate.
enum PushIdleRows {
  private static let counts = [1, 10, 100]
  /// The time after which the effects of the start and the first polls are over.
  private static let settling = 5.0
  /// Polls are fast for a minute after a start.
  private static let expectation = 70.0
  private static let seconds = 60.0

  static func measure(on stage: Stage) throws -> [Row] {
    let server = try PushStandIn(on: stage)
    let token = PushToken(on: stage, authority: server.authority, named: "push-idle")
    defer { token.end() }
    var rows: [Row] = []
    var enrolled = 0
    for count in counts {
      for number in enrolled..<count { try token.enroll(server.url(for: "PIPU\(number)")) }
      enrolled = count
      let readings = try token.start().readings
      pause(seconds: settling)
      rows.append(Row("push token, \(count) \(count == 1 ? "account" : "accounts"): memory", readings.memory))
      if count > 1 { rows += idle(readings, server, count) }
      token.end()
    }
    try server.requireNoFailures()
    return rows
  }

  private static func idle(_ readings: ProcessReadings, _ server: PushStandIn, _ accounts: Int) -> [Row] {
    pause(seconds: expectation - settling)
    let (polls, processor) = (server.pollCount, readings.processorSeconds)
    pause(seconds: seconds)
    let perHour = Double(server.pollCount - polls) / Double(accounts) * 3600 / seconds
    let busy = (readings.processorSeconds - processor) / seconds
    return [
      Row(
        "  idle: polls an hour and account",
        "\(perHour.text(0)), from \(server.pollCount - polls) polls in \(Int(seconds)) s"),
      Row("  idle: processor", "\((busy * 100).text(2)) % of a core"),
    ]
  }
}
