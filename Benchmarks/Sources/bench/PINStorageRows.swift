// SPDX-License-Identifier: Apache-2.0

/// The waits for storage of an approval with a PIN that the token verifies: those of an approval, and one for the count
/// of the attempt.
enum PINStorageRows {
  private static let rounds = 8
  private static let pin = "13589"
  private static let account = "PIPUPIN"
  /// Seconds, as in `PINRows`.
  private static let guardTime = 0.6

  static func measure(on stage: Stage, _ library: String) throws -> [Row] {
    let server = try PushStandIn(on: stage)
    let storage = try SlowStorage(library, named: "pin-storage", delay: 0.060, on: stage)
    let token = PushToken(on: stage, authority: server.authority, named: "pin-storage-token")
    let gateway = PushGateway()
    // The slowest polling, so that the token's own polls do not interfere.
    let settings =
      "fast_ms = 30000\nidle_seconds = 600\npin_digits = \(pin.count)\n"
      + "listen = \"\(Loopback.address):\(gateway.port)\""
    let control = try token.start(
      settings, enrolling: server.url(for: account, pin: true), choosing: pin, environment: storage.environment
    ).control
    defer { token.end() }
    var counts = WaitCounts()
    for round in 0...rounds {
      let led = try control.followLED()
      _ = try led.waitForLED("idle, connected")
      var moments: [SlowStorage.Waits] = []
      _ = try gateway.post {
        _ = try server.challenge(account)
        moments.append(try storage.waits())
      }
      _ = try led.waitForLED("PIN wanted")
      moments.append(try storage.waits())
      pause(seconds: guardTime)
      try control.press(pin.map(String.init))
      moments.append(try storage.waits())
      try control.press(["enter"])
      _ = try led.waitForLED("approved")
      moments.append(try storage.waits())
      _ = try led.waitForLED("idle, connected", isLit: false)
      pause(seconds: WaitCounts.settling)
      moments.append(try storage.waits())
      if round > 0 { counts.add(moments) }
    }
    try server.requireNoFailures()
    return counts.rows("token, one approval with a PIN that it verifies", "Enter to green", goals: (2, 5))
  }
}
