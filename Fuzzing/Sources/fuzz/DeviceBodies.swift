// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
import ReferenceProtocol

@testable import ServerParsers

/// The bodies that devices send to the token server, and the answers in them.
func readDeviceBody(_ bytes: [UInt8]) {
  let input = Input(bytes, choices: 13)
  let body = input.bytes
  switch input.choice {
  case 0: judgeRegistration(body)
  case 1: judgeValidation(body)
  case 2: if let request = roundTrip(KeyExchangeRequest.self, body) { readBase64(request.openPGPCertificate) }
  case 3: if let request = roundTrip(KeyAcknowledgement.self, body) { readBase64(request.proof) }
  case 4: _ = roundTrip(KeyAcknowledgementContent.self, body)
  case 5: _ = roundTrip(PushEnrollmentRequest.self, body)
  case 6: if let answer = roundTrip(SealedAnswer.self, body) { readBase64(answer.answer) }
  case 7: judgeAnswer(body, .push)
  case 8:
    for method in [.pushWithPIN, .pushWithCustomAuthenticator] as [ApprovalRequest.Method] { judgeAnswer(body, method) }
  case 9: _ = roundTrip(Denial.self, body)
  case 10: _ = roundTrip(EventAcknowledgement.self, body)
  case 12: readTokenForm(body)
  default:
    _ = roundTrip(PINActivation.self, body)
    _ = roundTrip(PINChangeRequest.self, body)
    _ = roundTrip(PINChangeCommit.self, body)
    _ = roundTrip(AuthenticatorActivation.self, body)
    if let order = roundTrip(AuthenticatorDeregistration.self, body) { readCustomData(order.data) }
    if let order = roundTrip(AuthenticatorRegistrationRequest.self, body) { readCustomData(order.data) }
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

private func readCustomData(_ text: String?) {
  guard let data = CustomData.parse(text) else { return }
  require(data.count <= AuthenticatorClaim.largestData, "accepted data keeps the limit")
  require(text == nil ? data.isEmpty : data.base64 == text, "Base64 has one form")
}

private func judgeRegistration(_ body: [UInt8]) {
  guard let request = roundTrip(RegistrationRequest.self, body) else { return }
  for key in request.jwks.keys {
    _ = try? key.publicKey()
    _ = key.thumbprint
  }
  guard (try? request.checked()) != nil else { return }
  require(request.clientName.isSafeToShow && request.clientName.utf8.count <= 128, "an accepted name can be printed")
}

private func judgeValidation(_ body: [UInt8]) {
  guard let request = roundTrip(ValidationRequest.self, body) else { return }
  _ = (SoftwareVersion(request.softwareVersion), try? request.checkVersions(), try? request.checkedCapabilities())
}

/// Parses a token request as the server does after client authentication.
private func readTokenForm(_ body: [UInt8]) {
  guard let form = try? Form(parsing: body), let request = try? TokenRequest(form) else { return }
  switch request {
  case .clientCredentials: break
  case .activation(let code, let profileID, let certificate):
    require(profileID.text.utf8.count == 6, "a profile id has 6 bytes")
    _ = ActivationCode(code)?.digits
    certificate.map(readBase64)
  case .logIn(let assertion, let profileID):
    _ = try? KnowledgeAssertion(
      parsing: assertion, clientID: "C", profileID: profileID.text, audience: "https://s/oauth/token",
      now: 1_795_253_339)
  case .logInWithAuthenticator(let login):
    require(login.data.count <= AuthenticatorClaim.largestData, "accepted data keeps the limit")
    require(login.data.isEmpty || !login.isBiometric, "a fingerprint has no data")
    _ = try? KnowledgeAssertion(
      parsing: login.assertion, clientID: "C", profileID: login.profileID.text, audience: "https://s/oauth/token",
      now: 1_795_253_339, authenticator: login.authenticator,
      dataSHA256: login.isBiometric ? nil : SHA256.hash(login.data).base64URL)
  }
}

private let request = JSON.encode(
  ApprovalRequest(
    iss: "https://s", clientID: "C", profileID: "P", transactionID: "t", type: "login", method: .push, message: nil,
    pushMessage: nil, nonce: "", sentAtMs: 0, expiresInMs: 60_000))
/// The answers in the corpus name its hash.
private let formerRequest = Array(#"{"a":1}"#.utf8)

private func judgeAnswer(_ plaintext: [UInt8], _ method: ApprovalRequest.Method) {
  var transaction = Transaction(
    id: "t", userID: UserID("ann"), clientID: ClientID("C"), profileID: ProfileID("P"), type: "login", method: method,
    callbackURI: "https://portal.example/", message: nil, nonce: [UInt8](repeating: 7, count: 32).base64URL,
    request: request, callbackOnExpiry: false, createdAt: Timestamp(0), expiresAt: Timestamp(60_000))
  transaction.formerRequests = [UInt8](repeating: 9, count: 32) + SHA256.hash(formerRequest)
  if method == .pushWithCustomAuthenticator { (transaction.authenticator, transaction.hasFallback) = ("badge", true) }
  switch try? AnswerVerifier.read(plaintext, for: transaction, transaction.content()) {
  case .proof(let proof, let claim)?:
    require(proof.count == 64 && claim.nonce.count == 32, "what is judged as a proof has a proof's length")
  case .authenticatorProof(let proof, let claim)?:
    require(proof.count == 64 && claim.nonce.count == 32, "what is judged as a proof has a proof's length")
    require(claim.data.count <= AuthenticatorClaim.largestData, "accepted data keeps the limit")
    require(claim.authenticator == transaction.authenticator, "a proof is of the request's authenticator")
  case .ending?, nil: break
  }
}
