// SPDX-License-Identifier: Apache-2.0
import Cryptography
import PINProtection
import Secrets

/// The user's waiting time after Enter, and its parts: the key derivation, curl's exchange of one answer with a server,
/// and the remainder for the token's cryptography, durable writes and panel.
final class PINRows {
  private static let rounds = 15
  private static let pin = "13589"
  /// Seconds; the simulated keypad presses a key every 20 ms and reports after the last pause.
  private static let (guardTime, keyPause) = (0.6, 0.02)
  private static let callback = "http://127.0.0.1:9/"

  static func measure(on stage: Stage) throws -> [Row] {
    let (waits, derivations) = try enterToVerdict(on: stage)
    let exchange = try LatencyRows.answerByCurl(on: stage)
    let rest = Sample(zip(waits, derivations).map { $0 - $1 - exchange.median })
    let what = "  what is left: sealing, durable lines, panel"
    return [
      Row("token: Enter to verdict, N = 2^15", Sample(waits).inMilliseconds),
      Row("  a key derivation beside it, in the same round", Sample(derivations).inMilliseconds),
      Row("  an answer by curl, without a PIN", exchange.inMilliseconds),
      // A negative remainder means that other processes used the machine meanwhile: the measurement is invalid.
      rest.median < 0
        ? Row(what, "\(rest.inMilliseconds): not measurable on a machine so busy")
        : Row(what, rest.inMilliseconds, goal: "≤ 5 ms", met: rest.median <= 0.005),
    ]
      + (try [14, 15, 16].map { log2N in
        let derive = try derivation(log2N: log2N)
        let sample = Sample(try (0..<rounds).map { _ in try derive() })
        let memory = Scrypt.Parameters(cost: 1 << UInt64(log2N), blockSize: 8, parallelization: 1).memory >> 20
        return Row("key derivation, scrypt_log2_n = \(log2N)", "\(sample.inMilliseconds), \(memory) MiB")
      })
  }

  /// A function that decrypts a token, which is almost only the key derivation, and returns the seconds it took.
  private static func derivation(log2N: Int) throws -> () throws -> Double {
    let parameters = Scrypt.Parameters(cost: 1 << UInt64(log2N), blockSize: 8, parallelization: 1)
    let (pin, binding) = (PIN(digits: SecretBytes(copying: Array(pin.utf8))), Random.secret(32))
    let wrapped = try WrappedToken.wrap(Random.secret(32), under: pin, binding: binding, parameters: parameters)
    return {
      let began = Instant.now
      _ = try wrapped.unwrap(with: pin, binding: binding)
      return Instant.now - began
    }
  }

  private static func enterToVerdict(on stage: Stage) throws -> (waits: [Double], derivations: [Double]) {
    let derive = try derivation(log2N: 15)
    let server = try TokenServer(on: stage, named: "pin-server", pins: true)
    defer { server.end() }
    let token = try Token(on: stage, user: "typist", choosing: pin, at: server)
    defer { token.end() }
    let site = Site(server)
    let portal = Connection(to: site)
    let device = try server.deviceID(of: "typist")
    let led = try token.control.followLED()
    var (waits, derivations): ([Double], [Double]) = ([], [])
    for round in 0...rounds {
      _ = try led.waitForLED("idle, connected")
      let asked = portal.exchange(site.ask("typist", on: device, type: "payment", callback: callback))
      guard site.transaction(in: asked) != nil else { throw BenchError("the portal was refused") }
      _ = try led.waitForLED("PIN wanted")
      pause(seconds: guardTime)
      try token.control.press(pin.map(String.init))
      let entered = try token.control.press(["enter"]) + -keyPause
      let green = try led.waitForLED("approved")
      let derivation = try derive()
      guard round > 0 else { continue }
      waits.append(green - entered)
      derivations.append(derivation)
    }
    try site.requireNoFailures()
    return (waits, derivations)
  }
}
