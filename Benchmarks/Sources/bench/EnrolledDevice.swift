// SPDX-License-Identifier: Apache-2.0
import Cryptography
import OpenPGP
import ReferenceProtocol

/// A device with an enrolled user: decrypts requests and encrypts answers.
final class EnrolledDevice {
  let device: Device
  let user: String
  private let profile: String
  private let key: OpenPGPKey
  private let serverCertificate: OpenPGPCertificate

  struct BenchError: Error {
    let what: String
  }

  /// Performs the whole enrollment, as a token does.
  init(_ user: String, at site: Site, code: String, profile: String, over connection: Connection) throws {
    self.user = user
    self.profile = profile
    device = try Device(at: site)
    key = try OpenPGPKey.generate(userID: "bench \(profile)")
    func ask(_ request: [UInt8], _ what: String) throws -> [UInt8] {
      guard let body = site.body(of: connection.exchange(request), what) else { throw BenchError(what: what) }
      return body
    }
    device.takeRegistration(connection.exchange(device.registration(code)))
    device.takeToken(
      connection.exchange(
        device.tokenRequest(
          grant: Grant.preAuthorizedCode, form: "&pre-authorized_code=\(code)&profile_id=\(profile)")))
    let base = "/device/v1/profiles/\(profile)"
    let exchange = KeyExchangeRequest(openPGPCertificate: key.certificate.bytes.base64)
    let keys = try JSON.decode(
      KeyExchangeResponse.self,
      from: ask(device.call("PUT", base + "/mobile-auth", JSON.encode(exchange)), "key exchange"))
    serverCertificate = try OpenPGPCertificate(parsing: bytes(base64: keys.serverCertificate) ?? [])
    let content = KeyAcknowledgementContent(clientID: device.clientID, profileID: profile, keyID: keys.keyID)
    let proof = try key.seal(JSON.encode(content), to: serverCertificate)
    _ = try ask(
      device.call("POST", base + "/mobile-auth/ack", JSON.encode(KeyAcknowledgement(proof: proof.base64))),
      "acknowledgement")
    _ = try ask(
      device.call("PUT", base + "/push", JSON.encode(PushEnrollmentRequest(transport: .sse))), "push enrollment")
    device.takeToken(connection.exchange(device.tokenRequest()))
  }

  struct Opened {
    fileprivate let plaintext: [UInt8]
    fileprivate let request: ApprovalRequest
  }

  /// Decrypts and verifies a request, which is a Base64 OpenPGP message.
  func open(_ message: String) throws -> Opened {
    let plaintext = try key.open(bytes(base64: message) ?? [], from: serverCertificate)
    return Opened(plaintext: plaintext, request: try JSON.decode(ApprovalRequest.self, from: plaintext))
  }

  /// The signed and encrypted body of an approval.
  func approval(of opened: Opened) throws -> [UInt8] {
    let request = opened.request
    let answer = ApprovalAnswer(
      aud: request.iss, clientID: request.clientID, profileID: request.profileID,
      transactionID: request.transactionID, requestSHA256: SHA256.hash(opened.plaintext).base64URL,
      nonce: request.nonce, attempt: 1, decision: .accept, reason: nil, methodUsed: request.method,
      gesture: .init(kind: .hold, heldMs: 1000), answeredAfterMs: 2000)
    return JSON.encode(SealedAnswer(answer: try key.seal(JSON.encode(answer), to: serverCertificate).base64))
  }

  /// Decrypts and verifies the receipt in the response to an answer.
  func openReceipt(in response: [UInt8]) throws -> ApprovalReceipt {
    let status = try JSON.decode(RequestStatus.self, from: response)
    return try JSON.decode(
      ApprovalReceipt.self, from: key.open(bytes(base64: status.sealedReceipt ?? "") ?? [], from: serverCertificate))
  }
}
