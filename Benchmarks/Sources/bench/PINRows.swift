import Cryptography
import PINProtection
import Secrets

/// How long a person waits after Enter, and where the time goes: the key derivation by itself, curl's exchange of one
/// answer with a server, and whatever is left for the token's own cryptography, its durable lines and its panel.
final class PINRows {
  private static let rounds = 15
  private static let pin = "13589"
  /// Seconds; the simulated keypad presses a key every 20 ms and reports after the last pause.
  private static let (guardTime, keyPause) = (0.6, 0.02)
  private static let callback = "http://127.0.0.1:9/"

  static func measure(on stage: Stage) throws -> [Row] {
    let derivations = try [14, 15, 16].map { ($0, try derivation(log2N: $0)) }
    guard let standard = derivations.first(where: { $0.0 == 15 })?.1 else { return [] }
    let waits = try enterToVerdict(on: stage)
    let exchange = try LatencyRows.answerByCurl(on: stage)
    let rest = waits.median - standard.median - exchange.median
    return [
      Row("token: Enter to verdict, N = 2^15", waits.inMilliseconds),
      Row("  of it the key derivation", standard.inMilliseconds),
      Row("  an answer by curl, without a PIN", exchange.inMilliseconds),
      Row(
        "  what is left: sealing, durable lines, panel", "\((rest * 1e3).text(1)) ms", goal: "≤ 5 ms",
        met: rest <= 0.005),
    ]
      + derivations.map { log2N, sample in
        let memory = Scrypt.Parameters(cost: 1 << UInt64(log2N), blockSize: 8, parallelisation: 1).memory >> 20
        return Row("key derivation, scrypt_log2_n = \(log2N)", "\(sample.inMilliseconds), \(memory) MiB")
      }
  }

  /// Seconds a wrapped token takes to unwrap: the derivation and next to nothing else.
  private static func derivation(log2N: Int) throws -> Sample {
    let parameters = Scrypt.Parameters(cost: 1 << UInt64(log2N), blockSize: 8, parallelisation: 1)
    let (pin, binding) = (PIN(digits: SecretBytes(copying: Array(pin.utf8))), Random.secret(32))
    let wrapped = try WrappedToken.wrap(Random.secret(32), under: pin, binding: binding, parameters: parameters)
    return Sample(
      try (0..<rounds).map { _ in
        let began = Instant.now
        _ = try wrapped.unwrap(with: pin, binding: binding)
        return Instant.now - began
      })
  }

  private static func enterToVerdict(on stage: Stage) throws -> Sample {
    let server = try TokenServer(on: stage, named: "pin-server", pins: true)
    defer { server.end() }
    let token = try Token(on: stage, user: "typist", choosing: pin, at: server)
    defer { token.end() }
    let site = Site(server)
    let portal = Connection(to: site)
    let device = try server.deviceID(of: "typist")
    let led = try token.control.followLED()
    var waits: [Double] = []
    for round in 0...rounds {
      _ = try led.waitForLED("idle, connected")
      let asked = portal.exchange(site.ask("typist", on: device, type: "payment", callback: callback))
      guard site.transaction(in: asked) != nil else { throw Failure("the portal was refused") }
      _ = try led.waitForLED("PIN wanted")
      pause(seconds: guardTime)
      try token.control.press(pin.map(String.init))
      let entered = try token.control.press(["enter"]) + -keyPause
      let green = try led.waitForLED("approved")
      if round > 0 { waits.append(green - entered) }
    }
    try site.requireNoFailures()
    return Sample(waits)
  }
}
