// SPDX-License-Identifier: Apache-2.0
package import BuiltPrograms
import Cryptography
import Foundation
package import OpenPGP
package import ReferenceProtocol

/// Enrollment and answers.
extension DeviceClient {
  private var profilePath: String { "/device/v1/profiles/\(profileID)" }

  @discardableResult
  package func exchangeKeys(_ certificate: OpenPGPCertificate? = nil) throws -> Curl.Reply {
    let certificate = certificate ?? openPGP.certificate
    let reply = try call(
      "PUT", profilePath + "/mobile-auth", body: KeyExchangeRequest(openPGPCertificate: certificate.bytes.base64),
      token: userToken)
    if reply.status == 200 {
      let exchanged = try reply.decoded(KeyExchangeResponse.self)
      serverCertificate = try OpenPGPCertificate(parsing: bytes(base64: exchanged.serverCertificate)!)
      keyID = exchanged.keyID
    }
    return reply
  }

  @discardableResult
  package func acknowledgeKeys() throws -> Curl.Reply {
    let content = KeyAcknowledgementContent(clientID: clientID, profileID: profileID, keyID: keyID)
    let proof = try openPGP.seal(JSON.encode(content), to: serverCertificate!)
    return try call(
      "POST", profilePath + "/mobile-auth/ack", body: KeyAcknowledgement(proof: proof.base64), token: userToken)
  }

  @discardableResult
  package func enrollForPush(over transport: DeviceConfiguration.Transport = .sse) throws -> Curl.Reply {
    try call("PUT", profilePath + "/push", body: PushEnrollmentRequest(transport: transport), token: userToken)
  }

  package func pending() throws -> [PendingEntry] {
    try call("GET", "/device/v1/pending").expect(200).decoded(PendingList.self).requests
  }

  /// The bytes of the request, and their decoded content.
  package func fetch(_ transaction: String) throws -> (bytes: [UInt8], request: ApprovalRequest) {
    let sealed = try call("GET", "/device/v1/requests/\(transaction)/message").expect(200).decoded(SealedRequest.self)
    let opened = try openPGP.open(bytes(base64: sealed.message)!, from: serverCertificate!, limit: 524_288)
    return (opened, try JSON.decode(ApprovalRequest.self, from: opened))
  }

  /// The answer to a fetched request; `change` makes it invalid.
  package func answer(
    _ transaction: String, _ decision: ApprovalAnswer.Decision, change: (inout ApprovalAnswer) -> Void = { _ in }
  ) throws -> SealedAnswer {
    let (plaintext, request) = try fetch(transaction)
    var answer = ApprovalAnswer(
      aud: request.iss, clientID: clientID, profileID: profileID, transactionID: transaction,
      requestSHA256: SHA256.hash(plaintext).base64URL, nonce: request.nonce, attempt: 1, decision: decision,
      reason: decision == .deny ? .declined : nil, methodUsed: request.method,
      gesture: .init(kind: .hold, heldMs: 900), answeredAfterMs: 1500)
    change(&answer)
    return SealedAnswer(answer: try openPGP.seal(JSON.encode(answer), to: serverCertificate!).base64)
  }

  @discardableResult
  package func send(_ answer: SealedAnswer, to transaction: String, key: String = Random.uuid()) throws
    -> Curl.Reply
  {
    try call(
      "POST", "/device/v1/requests/\(transaction)/answers", body: answer, headers: ["Idempotency-Key: \(key)"])
  }

  @discardableResult
  package func deny(_ transaction: String, _ reason: DenialReason, key: String = Random.uuid()) throws
    -> Curl.Reply
  {
    try call(
      "POST", "/device/v1/requests/\(transaction)/denials", body: Denial(reason: reason),
      headers: ["Idempotency-Key: \(key)"])
  }

  /// Waits for the next events after a cursor; nil requests the current cursor.
  package func events(after cursor: String?, wait: Int = 20) throws -> EventPage? {
    let query = cursor.map { "?after=\($0)" } ?? ""
    let reply = try call(
      "GET", "/device/v1/events" + query, headers: ["Accept: application/json", "Prefer: wait=\(wait)"])
    return reply.status == 204 ? nil : try reply.expect(200).decoded(EventPage.self)
  }

  /// An event stream with curl, after its first line: the device is connected.
  /// - Parameter seconds: after which curl ends it.
  package func openEventStream(after cursor: String? = nil, for seconds: Int = 120) throws -> RunningProgram {
    let headers = ["Accept: text/event-stream"] + (cursor.map { ["Last-Event-ID: \($0)"] } ?? [])
    let stream = try RunningProgram(
      Curl.program,
      server.curl.all(
        ["--no-buffer", "--max-time", "\(seconds)"] + arguments("GET", "/device/v1/events", headers: headers)))
    while let line = stream.nextLine() {
      if line == ":" { return stream }
    }
    throw Curl.CurlError(description: "the stream ended before it began")
  }
}
