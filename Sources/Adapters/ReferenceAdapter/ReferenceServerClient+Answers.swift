// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
import HTTP
package import MobileAuth
import OpenPGP
import ReferenceProtocol
import Secrets

/// Answers to requests, and the states of requests.
extension ReferenceServerClient {
  package func deliver(_ response: SealedResponse) async throws(TokenServerError) -> Verdict {
    listedMessage.discard()
    defer { listedMessage.discard() }
    do {
      let verdict = try await confirm(response)
      conclude(response, isRight: verdict.decision == .accept)
      return verdict
    } catch {
      if error.effect != .retry { conclude(response, isRight: false) }
      throw error
    }
  }

  private func confirm(_ response: SealedResponse) async throws(TokenServerError) -> Verdict {
    let reply = try await send(response)
    let status = try DeviceClient.decode(RequestStatus.self, reply)
    guard let receipt = status.receipt else { throw .unreachable("the token server's answer has no receipt") }
    try requireReceipt(status, for: response)
    return try response.verdict(
      RemoteState(status.state), receipt: receipt.sanitized, info: status.customInfo.map(AuthenticatorInfo.init))
  }

  private func send(_ response: SealedResponse) async throws(TokenServerError) -> HTTPResponse {
    let id = response.request.pending.account
    let profile = self.profile(of: id)
    let send = { [client] () async throws(TokenServerError) in
      try await client.call(
        .post, Self.answers(to: response.request.pending.transaction), body: response.body,
        headers: ["Idempotency-Key": response.idempotencyKey], about: profile)
    }
    guard response.decision == .accept, let source = response.source, let account = try? self.account(id),
      let authenticator = account.registered(source)
    else { return try await send() }
    return try await revoking(authenticator, of: account, send)
  }

  /// The path of the answers to a request.
  private static func answers(to transaction: TransactionID) -> String { "/requests/\(transaction)/answers" }

  package func status(
    of transaction: TransactionID, account: AccountID
  ) async throws(TokenServerError) -> RemoteStatus {
    let reply = try await client.call(.get, "/requests/\(transaction)", about: profile(of: account))
    let status = try DeviceClient.decode(RequestStatus.self, reply)
    return try RemoteStatus(
      state: RemoteState(status.state), receipt: answered(status, of: transaction, account: account),
      idempotencyKey: status.idempotencyKey)
  }

  package var sealsWithoutDeciding: Bool { true }

  package func seal(_ response: ChallengeResponse) async throws(TokenServerError) -> SealedResponse {
    let request = response.request
    let account = try self.account(request.pending.account)
    let context = request.contents.answerContext
    let (digest, nonce) = (Array(context[..<32]), Array(context[32..<64]))
    let method = ApprovalRequest.Method(rawValue: String(decoding: context[66...], as: UTF8.self))
    var answer = ApprovalAnswer(
      aud: client.issuer, clientID: clientID, profileID: account.profile,
      transactionID: request.pending.transaction.text, requestSHA256: digest.base64URL, nonce: nonce.base64URL,
      attempt: Int(context[64]), decision: response.decision == .accept ? .accept : .deny,
      reason: response.decision.reason, methodUsed: method, gesture: ApprovalAnswer.Gesture(response.gesture),
      answeredAfterMs: response.answeredAfter.milliseconds)
    answer.readBack = response.readBack?.bytes.withExposedSecret { String(decoding: $0, as: UTF8.self) }
    do {
      try addProof(of: response, by: account, to: &answer, nonce, digest)
      answer.underlyingError = response.underlyingError
      let sealed = try account.key.seal(JSON.encode(answer), to: account.serverCertificate)
      await client.prepare(.post, Self.answers(to: request.pending.transaction))
      return response.sealed(JSON.encode(SealedAnswer(answer: sealed.base64)))
    } catch let fault as TokenServerError { throw fault } catch {
      throw .refused("sealing the answer failed: \(error)")
    }
  }

  /// Adds what proves the user: of the PIN, or of a custom authenticator.
  private func addProof(
    of response: ChallengeResponse, by account: Account, to answer: inout ApprovalAnswer, _ nonce: [UInt8],
    _ digest: [UInt8]
  ) throws {
    if let pin = response.pin {
      if answer.methodUsed != .pushWithPIN {
        (answer.methodUsed, answer.fallbackFrom) = (.pushWithPIN, answer.methodUsed)
      }
      let claim = ApprovalClaim(nonce: nonce, requestSHA256: digest, decision: .accept)
      let opened = try open(account, typed: pin)
      note(opened, of: account, in: response)
      answer.pinProof = try opened.key.proof(claim).base64URL
    } else if let given = response.data, let source = response.authenticator {
      guard let authenticator = account.registered(source) else {
        throw TokenServerError.authenticatorFailed(
          AuthenticatorFailure(number: 9022, reason: "the authenticator was deregistered", isRevoked: true))
      }
      let data = given.sent
      let claim = AuthenticatorClaim(
        nonce: nonce, requestSHA256: digest, decision: .accept, authenticator: authenticator.identifier, data: data)
      let method: ApprovalRequest.Method =
        authenticator.kind == .biometric ? .pushWithFingerprint : .pushWithCustomAuthenticator
      if answer.methodUsed != method { (answer.methodUsed, answer.fallbackFrom) = (method, answer.methodUsed) }
      answer.authenticator = authenticator.identifier
      answer.authenticatorProof = try key(of: authenticator, account).proof(claim).base64URL
      if authenticator.kind == .custom { answer.customData = data.base64 } else { answer.gesture.kind = .finger }
    }
  }
}

extension Decision {
  fileprivate var reason: ReferenceProtocol.DenialReason? {
    switch self {
    case .accept: nil
    case .deny(.declined): .declined
    case .deny(.canceled): .canceled
    case .deny(.notMe): .notMe
    }
  }
}

extension ApprovalAnswer.Gesture {
  fileprivate init(_ gesture: MobileAuth.Gesture) {
    let kind: Kind =
      switch gesture.kind {
      case .hold: .hold
      // The protocol has no deny button.
      case .doublePress, .denyButton: .doublePress
      case .veryLongHold: .veryLongHold
      case .enter: .enter
      case .cancelKeys: .cancelKeys
      case .authenticator, .authenticatorCancel: .authenticator
      }
    self.init(kind: kind, heldMs: gesture.held.milliseconds)
  }
}
