// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import Secrets

/// A poll and an answer of a push token, compared with a shell script: sign with openssl, send with curl.
///
/// Compared twice: with the unavoidable parts, which are a signature by libcrypto and curl's exchange on an open
/// connection like the token's; and with a pipeline of programs as an administrator would write it, from its start to
/// its end.
final class PushRows {
  private static let rounds = 15
  /// Seconds, as in `LatencyRows`.
  private static let (guardTime, hold) = (0.6, 0.85)
  /// The slowest polling, so that the token's own polls do not interfere.
  private static let settings = "fast_ms = 30000\nidle_seconds = 600\n"

  private static let account = "PIPU0"

  private let stage: Stage
  private let server: PushStandIn
  private let control: ControlSocket
  private let gateway: PushGateway
  private let curl: Curl
  /// The script's own token, with a key of the same size.
  private let serial = "PIPUBESIDE"
  private let key: RSAPrivateKey

  private var (polls, toLED, answers): ([Double], [Double], [Double]) = ([], [], [])
  private var (signatures, curlAnswers): ([Double], [Double]) = ([], [])
  private var (curlPolls, curlLists): ([Double], [Double]) = ([], [])
  private var (pollScripts, answerScripts): ([Double], [Double]) = ([], [])

  static func measure(on stage: Stage) throws -> [Row] {
    let server = try PushStandIn(on: stage)
    let token = PushToken(on: stage, authority: server.authority, named: "push")
    try token.enroll(server.url(for: account))
    let gateway = PushGateway()
    let control = try token.start(settings + "listen = \"\(Loopback.address):\(gateway.port)\"").control
    defer { token.end() }
    let measurement = try PushRows(stage, server, control, gateway)
    // One round that does not count opens the connections and fills the caches of all programs.
    for round in 0...rounds {
      try measurement.round(counts: round > 0)
      try server.requireNoFailures()
    }
    return measurement.rows
  }

  private init(
    _ stage: Stage, _ server: PushStandIn, _ control: ControlSocket, _ gateway: PushGateway
  ) throws {
    (self.stage, self.server, self.control, self.gateway) = (stage, server, control, gateway)
    curl = Curl(stage: stage, authority: server.authority, origin: server.wire.origin)
    key = try RSAPrivateKey(bits: 3072)
    server.enroll(serial, key.publicKey)
    try key.exportedSecret().withExposedSecret { bytes in
      try Data(bytes).write(to: URL(filePath: "\(stage.directory)/key.der"))
    }
  }

  private func round(counts: Bool) throws {
    let led = try control.followLED()
    _ = try led.waitForLED("idle, connected")
    let hinted = try gateway.post()
    let answered = try server.answered(Self.account, after: hinted)
    let posted = try gateway.post { _ = try server.challenge(Self.account) }
    let blue = try led.waitForLED("confirmation wanted")
    pause(seconds: Self.guardTime)
    let released = try control.hold(seconds: Self.hold)
    let green = try led.waitForLED("approved")

    let (signature, poll) = try pollWithCurl()
    let nonce = try server.challenge(serial)
    let list = try pollWithCurl().exchange
    let answer = try answerWithCurl(nonce)
    let pollScript = try run(Self.pollScript)
    let answerScript = try run(Self.answerScript, server.challenge(serial))
    guard counts else { return }
    polls.append(answered - hinted)
    toLED.append(blue - posted)
    answers.append(green - released)
    signatures.append(signature)
    curlPolls.append(poll)
    curlLists.append(list)
    curlAnswers.append(answer)
    pollScripts.append(pollScript)
    answerScripts.append(answerScript)
  }

  // MARK: The comparison

  /// - Returns: seconds libcrypto takes to sign, and curl to exchange.
  private func pollWithCurl() throws -> (signature: Double, exchange: Double) {
    let (poll, seconds) = try signedPoll()
    return (seconds, try exchange([poll, poll]))
  }

  /// - Returns: seconds curl takes to exchange.
  private func answerWithCurl(_ nonce: String) throws -> Double {
    let signature = try sign("\(nonce)|\(serial)").text
    let body = #"{"nonce":"\#(nonce)","serial":"\#(serial)","signature":"\#(signature)"}"#
    return try exchange([signedPoll().transfer, .init(PushStandIn.path, [], body: Array(body.utf8))])
  }

  private func signedPoll() throws -> (transfer: Curl.Transfer, seconds: Double) {
    let stamp = Date().formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    let (signature, seconds) = try sign("\(serial)|\(stamp)")
    let query = "serial=\(serial)&timestamp=\(stamp)&signature=\(signature.replacing("=", with: "%3D"))"
    return (Curl.Transfer("\(PushStandIn.path)?\(query)", []), seconds)
  }

  /// The last transfer, on the connection that the first one opened.
  private func exchange(_ transfers: [Curl.Transfer]) throws -> Double {
    guard let last = try curl.run(transfers).last, !last.isOnNewConnection else {
      throw BenchError("curl chose another connection")
    }
    return last.seconds
  }

  private func sign(_ text: String) throws -> (text: String, seconds: Double) {
    let began = Instant.now
    let signature = try key.signature(for: Array(text.utf8))
    return (signature.base32, Instant.now - began)
  }

  private static let signing = "openssl dgst -sha256 -sign key.der -keyform DER | base32 -w 0"
  private static let sending = #"curl --silent --fail --output /dev/null --cacert "$1""#

  private static let pollScript = """
    stamp=$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ)
    signature=$(printf %s "$3|$stamp" | \(signing))
    \(sending) --get --data-urlencode "serial=$3" --data-urlencode "timestamp=$stamp" \
      --data-urlencode "signature=$signature" "$2"
    """

  private static let answerScript = """
    signature=$(printf %s "$4|$3" | \(signing))
    printf '{"nonce":"%s","serial":"%s","signature":"%s"}' "$4" "$3" "$signature" |
      \(sending) --header "Content-Type: application/json" --data-binary @- "$2"
    """

  /// - Returns: seconds from the start of a shell to its end.
  private func run(_ script: String, _ nonce: String = "") throws -> Double {
    let began = Instant.now
    _ = try Child.run(
      "sh", ["-ec", "cd \"$5\"\n" + script, "sh", server.authority, server.endpoint, serial, nonce, stage.directory],
      log: "\(stage.directory)/sh.log")
    return Instant.now - began
  }

  // MARK: Rows

  private var rows: [Row] {
    let (signature, poll, answer) = (Sample(signatures), Sample(curlPolls), Sample(curlAnswers))
    return [
      Row("push token: hint to the poll's answer", polls, besides: pollScripts),
      Row("  openssl and curl in a shell", Sample(pollScripts).inMilliseconds),
      Row("  a signature by libcrypto, RSA 3072", signature.inMilliseconds),
      Row("  the same exchange by curl", polls, besidesParts: [signature], poll),
      Row("push token: hint to LED", Sample(toLED).inMilliseconds),
      Row("  the list with one login by curl", Sample(curlLists).inMilliseconds),
      Row("push token: hold to receipt", answers, besides: answerScripts),
      Row("  openssl and curl in a shell", Sample(answerScripts).inMilliseconds),
      Row("  the same exchange by curl", answers, besidesParts: [signature], answer),
    ]
  }
}
