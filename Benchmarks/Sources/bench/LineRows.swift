// SPDX-License-Identifier: Apache-2.0

/// What a long line costs the user: a token behind a line with 50 ms round trips, beside one without, in alternating
/// rounds at one server.
final class LineRows {
  /// Seconds.
  private static let roundTrip = 0.050
  /// What the token may take in addition to its round trip, in seconds.
  private static let allowance = 0.015

  /// Longer than the server keeps the connections of others than devices, and than libcurl's default.
  private static let idleMinutes = 3.0

  static func measure(on stage: Stage) throws -> [Row] {
    try rows(on: stage, "", rounds: 8)
      + rows(on: stage, ", after \(Int(idleMinutes)) idle minutes", rounds: 3, pause: idleMinutes * 60)
      + rows(on: stage, ", connections were closed", rounds: 4, idleSeconds: 1, pause: 2.5)
  }

  /// - Parameters:
  ///   - idleSeconds: after this time the server closes connections; nil for its defaults.
  ///   - gap: seconds before each round but the first, which is not counted.
  private static func rows(
    on stage: Stage, _ remark: String, rounds: Int, idleSeconds: Int? = nil, pause gap: Double = 0
  ) throws -> [Row] {
    let server = try TokenServer(on: stage, named: "line-server-\(gap)", idleSeconds: idleSeconds)
    defer { server.end() }
    let site = Site(server)
    let callbacks = CallbackReceiver(on: site.loop)
    let line = DelayLine(delay: roundTrip / 2)
    let tokens = [
      try Token(on: stage, user: "near-\(gap)", at: server),
      try Token(on: stage, user: "far-\(gap)", at: server, environment: ["https_proxy": line.url]),
    ]
    defer { tokens.forEach { $0.end() } }
    var times: [[ApprovalRound.Times]] = [[], []]
    for round in 0...rounds {
      if round > 0 { pause(seconds: gap) }
      for (index, token) in tokens.enumerated() {
        // The server closes the portal's connection, too.
        let portal = try ApprovalRound(token, at: server, site, callback: callbacks.url)
        let measured = try portal.run()
        if round > 0 { times[index].append(measured) }
      }
    }
    try site.requireNoFailures()
    // The hint itself is half a round trip on its way.
    let (near, far) = (Sample(times[0].map(\.toLED)), Sample(times[1].map { $0.toLED - roundTrip / 2 }))
    let (nearGreen, farGreen) = (Sample(times[0].map(\.toGreen)), Sample(times[1].map(\.toGreen)))
    let most = roundTrip + allowance
    let title = "token, round trip of \(Int(roundTrip * 1e3)) ms\(remark)"
    func trips(_ far: Sample, _ near: Sample) -> String { ((far.median - near.median) / roundTrip).text(1) }
    let ofLED = "\(trips(far, near)) round trips: \(far.inMilliseconds), without delay \(near.inMilliseconds)"
    let ofGreen =
      "\(trips(farGreen, nearGreen)) round trips: \(farGreen.inMilliseconds), without delay \(nearGreen.inMilliseconds)"
    return [
      idleSeconds == nil
        ? Row("\(title): hint to LED", ofLED, goal: "≤ \(Int(most * 1e3)) ms", met: far.median <= most)
        : Row("\(title): hint to LED", ofLED),
      Row("  release to green", ofGreen),
    ]
  }
}
