// SPDX-License-Identifier: Apache-2.0
/// The cost of an idle token: memory, threads, wake-ups.
struct IdleRows {
  /// The measured time, without a request.
  static let seconds = 60.0
  /// The time after which the effects of enrollment and the first list, or of a request, are over.
  static let settling = 5.0

  static func measure(on stage: Stage) throws -> [Row] {
    let server = try TokenServer(on: stage, named: "idle-server")
    defer { server.end() }
    let token = try Token(on: stage, user: "idle", at: server)
    defer { token.end() }
    _ = try token.control.followLED().waitForLED("idle, connected")
    pause(seconds: settling)
    let (switches, processor) = (token.readings.wakeUps, token.readings.processorSeconds)
    pause(seconds: seconds)
    let perSecond = Double(token.readings.wakeUps(since: switches)) / seconds
    let busy = (token.readings.processorSeconds - processor) / seconds
    let resident = token.readings.mebibytes("VmRSS")
    let unreclaimable = token.readings.unreclaimable.map { size in
      Row(
        "token, enrolled and connected: memory that cannot be reclaimed", "\(size.text(2)) MiB", goal: "≤ 4 MiB",
        met: size <= 4)
    }
    return [unreclaimable].compactMap(\.self) + [
      Row(
        "token, enrolled and connected: memory", token.readings.memory, goal: "≤ 16 MiB", met: resident <= 16),
      Row(
        "token, over \(Int(seconds)) idle seconds: wake-ups", "\(perSecond.text(2)) per second", goal: "≤ 0.5",
        met: perSecond <= 0.5),
      Row(
        "token, idle: threads, processor", "\(token.readings.threads) threads, \((busy * 100).text(2)) % of a core"),
    ]
  }
}
