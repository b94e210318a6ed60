// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import Secrets
import TestAM

/// A push message of AM and its answer, compared with a shell script: verify the message with openssl only; sign the
/// answer with openssl, and send it with curl.
///
/// The answer is compared twice, as in `PushRows`: with its unavoidable parts, which are two HMACs by libcrypto and
/// curl's exchange on an open connection; and with a pipeline of programs, from its start to its end.
final class PingAMRows {
  private static let rounds = 15
  /// Seconds, as in `LatencyRows`.
  private static let (guardTime, hold) = (0.6, 0.85)
  private static let user = "ann"
  private static let header = #"{"typ":"JWT","alg":"HS256"}"#

  private let stage: Stage
  private let server: AMStandIn
  private let control: ControlSocket
  private let curl: Curl
  private let secret: [UInt8]

  private var (toLED, answers): ([Double], [Double]) = ([], [])
  private var (signatures, exchanges): ([Double], [Double]) = ([], [])
  private var (checkScripts, answerScripts): ([Double], [Double]) = ([], [])

  static func measure(on stage: Stage) throws -> [Row] {
    let server = try AMStandIn(on: stage)
    let token = PushToken(on: stage, authority: server.wire.authority, named: "pingam")
    try server.register(user, at: token)
    let control = try token.start().control
    defer { token.end() }
    let measurement = try PingAMRows(stage, server, control)
    // One round that does not count opens the connections and fills the caches of all programs.
    for round in 0...rounds { try measurement.round(counts: round > 0) }
    return measurement.rows
  }

  private init(_ stage: Stage, _ server: AMStandIn, _ control: ControlSocket) throws {
    (self.stage, self.server, self.control) = (stage, server, control)
    curl = Curl(stage: stage, authority: server.wire.authority, origin: server.wire.origin)
    guard let secret = server.am.secret(of: Self.user) else { throw BenchError("AM knows no token") }
    self.secret = secret
  }

  private func round(counts: Bool) throws {
    let led = try control.followLED()
    _ = try led.waitForLED("idle, connected")
    let push = try server.push(to: Self.user)
    let brought = try control.bring(push.envelope)
    let blue = try led.waitForLED("confirmation wanted")
    pause(seconds: Self.guardTime)
    let released = try control.hold(seconds: Self.hold)
    let green = try led.waitForLED("approved")
    try server.requireLogin(push)

    let (signature, exchange) = try answerWithCurl(server.push(to: Self.user))
    let scripted = try server.push(to: Self.user)
    let check = try run(Self.checkScript, scripted)
    let answer = try run(Self.answerScript, scripted)
    try server.requireLogin(scripted)
    guard counts else { return }
    toLED.append(blue - brought)
    answers.append(green - released)
    signatures.append(signature)
    exchanges.append(exchange)
    checkScripts.append(check)
    answerScripts.append(answer)
  }

  // MARK: The comparison

  private struct Claims: Decodable { let c: String }

  /// The challenge in Base64.
  private func challenge(of push: TestAM.Push) throws -> String {
    try JSONDecoder().decode(Claims.self, from: Data(JWS.Unverified(parsing: push.message).untrustedPayload)).c
  }

  /// - Returns: seconds libcrypto takes for both HMACs, and curl for the exchange.
  private func answerWithCurl(_ push: TestAM.Push) throws -> (signature: Double, exchange: Double) {
    let challenge = [UInt8](Data(base64Encoded: try challenge(of: push)) ?? Data())
    let key = SecretBytes(copying: secret)
    let began = Instant.now
    let response = HMACSHA256.authenticate(challenge, key: key).base64
    let jwt = JWS.sign(
      header: Array(Self.header.utf8), payload: Array(#"{"response":"\#(response)"}"#.utf8), secret: key)
    let seconds = Instant.now - began
    let transfer = Curl.Transfer(
      "\(AMStandIn.path)?_action=authenticate", AMStandIn.fields,
      body: Array(#"{"messageId":"\#(push.messageID)","jwt":"\#(jwt)"}"#.utf8))
    // AM accepts the same answer again until the login page has read it.
    guard let last = try curl.run([transfer, transfer]).last, !last.isOnNewConnection else {
      throw BenchError("curl chose another connection")
    }
    try server.requireLogin(push)
    return (seconds, last.seconds)
  }

  private static let functions = #"""
    authenticate() { openssl dgst -sha256 -mac HMAC -macopt "hexkey:$1" -binary | base64 -w 0; }
    url() { tr '+/' '-_' | tr -d '='; }
    """#

  /// $1 secret, $2 JWT
  private static let checkScript =
    functions + #"""

      [ "$(printf %s "${2%.*}" | authenticate "$1" | url)" = "${2##*.}" ]
      """#

  /// $1 secret, $3 challenge, $4 message id, $5 URL, $6 certificate
  private static let answerScript =
    functions + #"""

      response=$(printf %s "$3" | base64 -d | authenticate "$1")
      header=$(printf %s '{"typ":"JWT","alg":"HS256"}' | base64 -w 0 | url)
      payload=$(printf '{"response":"%s"}' "$response" | base64 -w 0 | url)
      signature=$(printf %s "$header.$payload" | authenticate "$1" | url)
      printf '{"messageId":"%s","jwt":"%s"}' "$4" "$header.$payload.$signature" |
        curl --silent --fail --output /dev/null --cacert "$6" --header "Content-Type: application/json" \
          --header "Accept-API-Version: resource=1.0, protocol=1.0" --header "Cookie: amlbcookie=01" \
          --data-binary @- "$5?_action=authenticate"
      """#

  /// - Returns: seconds from the start of a shell to its end.
  private func run(_ script: String, _ push: TestAM.Push) throws -> Double {
    let words = [
      secret.lowercaseHex, push.message, try challenge(of: push), push.messageID, server.wire.origin + AMStandIn.path,
      server.wire.authority,
    ]
    let began = Instant.now
    _ = try Child.run("sh", ["-ec", script, "sh"] + words, log: "\(stage.directory)/sh.log")
    return Instant.now - began
  }

  // MARK: Rows

  private var rows: [Row] {
    let (signature, exchange) = (Sample(signatures), Sample(exchanges))
    return [
      Row("PingAM: message in to LED", toLED, besides: checkScripts, of: "openssl", goal: "openssl"),
      Row("  openssl in a shell, the signature alone", Sample(checkScripts).inMilliseconds),
      Row("PingAM: hold to 200, from the release", answers, besides: answerScripts),
      Row("  openssl and curl in a shell", Sample(answerScripts).inMilliseconds),
      Row("  two HMACs by libcrypto", signature.inMilliseconds),
      Row("  the same exchange by curl", answers, besidesParts: [signature], exchange),
    ]
  }
}
