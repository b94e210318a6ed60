import Cryptography
import ReferenceProtocol

@testable import ServerParsers

/// The bodies that devices send to the token server, and the answers in them.
func readDeviceBody(_ bytes: [UInt8]) {
  let input = Input(bytes, choices: 12)
  let body = input.bytes
  switch input.choice {
  case 0: judgeRegistration(body)
  case 1: if let request = roundTrip(ValidationRequest.self, body) { _ = SoftwareVersion(request.softwareVersion) }
  case 2: if let request = roundTrip(KeyExchangeRequest.self, body) { readBase64(request.openPGPCertificate) }
  case 3: if let request = roundTrip(KeyAcknowledgement.self, body) { readBase64(request.proof) }
  case 4: _ = roundTrip(KeyAcknowledgementContent.self, body)
  case 5: _ = roundTrip(PushEnrolmentRequest.self, body)
  case 6: if let answer = roundTrip(SealedAnswer.self, body) { readBase64(answer.answer) }
  case 7: judgeAnswer(body, .push)
  case 8: judgeAnswer(body, .pushWithPIN)
  case 9: _ = roundTrip(Denial.self, body)
  case 10: _ = roundTrip(EventAcknowledgement.self, body)
  default:
    _ = roundTrip(PINActivation.self, body)
    _ = roundTrip(PINChangeRequest.self, body)
    _ = roundTrip(PINChangeCommit.self, body)
  }
}

/// Decodes, encodes and decodes again: both values must be equal.
private func roundTrip<Value: Codable & Equatable>(_ type: Value.Type, _ bytes: [UInt8]) -> Value? {
  guard let value = try? JSON.decode(type, from: bytes) else { return nil }
  require((try? JSON.decode(type, from: JSON.encode(value))) == value, "\(type) survives being written")
  return value
}

private func readBase64(_ text: String) {
  guard let decoded = bytes(base64: text) else { return }
  require(decoded.base64 == text, "Base64 has one form")
}

private func judgeRegistration(_ body: [UInt8]) {
  guard let request = roundTrip(RegistrationRequest.self, body) else { return }
  for key in request.jwks.keys {
    _ = try? key.publicKey()
    _ = key.thumbprint
  }
}

private let request = Array(#"{"a":1}"#.utf8)

private func judgeAnswer(_ plaintext: [UInt8], _ method: ApprovalRequest.Method) {
  var transaction = Transaction(
    id: "t", userID: "ann", clientID: "C", profileID: "P", type: "login", method: method,
    callbackURI: "https://portal.example/", message: nil, nonce: [UInt8](repeating: 7, count: 32).base64URL,
    request: request, callbackOnExpiry: false, createdAtMs: 0, expiresAtMs: 60_000)
  transaction.formerRequests = [UInt8](repeating: 9, count: 64)
  guard case .proof(let proof, let claim)? = try? AnswerJudge.read(plaintext, for: transaction, issuer: "https://s")
  else { return }
  require(proof.count == 64 && claim.nonce.count == 32, "what is judged as a proof has a proof's length")
}
