import Cryptography
import GRDB
import Hummingbird
import Logging
import ReferenceProtocol

/// Result, verdict and callback become durable together, before the device is told.
extension AnswerRoutes {
  /// A blob that is not the device's answer does not close a request; this many do.
  static let badAnswersAllowed = 5

  private enum Outcome: Sendable {
    case recorded(Verdict, Effects)
    /// The same key came twice at the same time, and the other one was first.
    case known(Verdict)
    case tooLate(RequestState)
  }

  func record(
    _ judgement: Judgement, of arrival: ArrivedAnswer, for transaction: Transaction
  ) async throws -> Response {
    let issuer = gate.origin.issuer
    let outcome = try await gate.store.write { database in
      try Self.record(judgement, of: arrival, for: transaction, issuer: issuer, in: database)
    }
    switch outcome {
    case .recorded(let verdict, let effects):
      announcer.announce(effects)
      announcer.log.info("transaction \(transaction.id): \(describe(judgement))")
      return verdict.response()
    case .known(let verdict): return try verdict.response(to: arrival.hash)
    case .tooLate(let state): throw Self.tooLate(state)
    }
  }

  private static func record(
    _ judgement: Judgement, of arrival: ArrivedAnswer, for transaction: Transaction, issuer: String,
    in database: Database
  ) throws -> Outcome {
    if let known = try database.verdict(arrival.key, of: transaction.clientID) { return .known(known) }
    var effects: Effects?
    let verdict: Verdict
    switch judgement {
    case .ending(let ending, let denial):
      (verdict, effects) = try settle(transaction, ending, denial, by: arrival, in: database)
    case .invalid(let why):
      let count = try database.countBadAnswer(to: transaction.id)
      if count > 0 {
        effects =
          count < badAnswersAllowed ? Effects() : try database.end(transaction, .invalidAnswers, nowMs: arrival.atMs)
      }
      verdict = Verdict(Problem(.answerInvalid, issuer: issuer, detail: why), to: arrival.hash)
    }
    guard let effects else {
      return .tooLate(try database.transaction(transaction.id)?.state(at: arrival.atMs) ?? .expired)
    }
    try database.insert(verdict, key: arrival.key, clientID: transaction.clientID, nowMs: arrival.atMs)
    return .recorded(verdict, effects)
  }

  /// - Returns: no effects if it had ended before.
  private static func settle(
    _ transaction: Transaction, _ ending: Ending, _ denial: DenialReason?, by arrival: ArrivedAnswer,
    in database: Database
  ) throws -> (Verdict, Effects?) {
    let settlement = Settlement(receipt: Random.uuid(), idempotencyKey: arrival.key, denial: denial)
    let effects = try database.end(transaction, ending, settlement: settlement, nowMs: arrival.atMs)
    let status = RequestStatus(state: ending.state, receipt: settlement.receipt, idempotencyKey: arrival.key)
    return (Verdict(requestHash: arrival.hash, status: 200, body: JSON.encode(status)), effects)
  }

  /// An acceptance that is one if its proof is the PIN's.
  func record(
    _ proof: [UInt8], of claim: ApprovalClaim, in arrival: ArrivedAnswer, for transaction: Transaction
  ) async throws -> Response {
    let attempt = PINAttempt(
      clientID: transaction.clientID, profileID: transaction.profileID, key: arrival.key, requestHash: arrival.hash)
    let issuer = gate.origin.issuer
    let verdict: Verdict?
    do {
      verdict = try await pins.judge(attempt, isRight: { claim.isProved(by: proof, $0) }) { database, finding in
        try Self.rule(finding, on: transaction, by: arrival, issuer: issuer, in: database)
      }
    } catch let refusal as PINJudge.Refusal { throw DeviceRefusal(refusal) }
    if let verdict {
      let outcome = verdict.isSuccess ? RequestState.authenticated.rawValue : "wrong PIN"
      announcer.log.info("transaction \(transaction.id): \(outcome)")
      return verdict.response()
    }
    let ended = try await gate.transaction(transaction.id, of: arrival.caller)
    throw Self.tooLate(ended.state(at: arrival.atMs))
  }

  private static func rule(
    _ finding: PINFinding, on transaction: Transaction, by arrival: ArrivedAnswer, issuer: String,
    in database: Database
  ) throws -> PINJudge.Ruling {
    let nonce = finding == .right ? transaction.nonce : Random.bytes(32).base64URL
    let isOpen = try database.countPINAttempt(for: transaction.id, nonce: nonce)
    switch finding {
    case .right:
      guard isOpen else { return .init() }
      let (verdict, effects) = try settle(transaction, .accepted, nil, by: arrival, in: database)
      return .init(verdict: verdict, effects: effects ?? Effects())
    case .wrong:
      // Who withdrew or replaced the request meanwhile has ended it; the attempt counts all the same.
      guard isOpen else { return .init() }
      return .init(verdict: Problem(finding, issuer: issuer, nonce: nonce).map { Verdict($0, to: arrival.hash) })
    case .limitReached:
      return .init(
        verdict: Problem(finding, issuer: issuer).map { Verdict($0, to: arrival.hash) },
        effects: try database.end(transaction, .invalidAnswers, nowMs: arrival.atMs) ?? Effects())
    }
  }

  private static func tooLate(_ state: RequestState) -> DeviceRefusal {
    DeviceRefusal(state == .expired ? .expired : .alreadyHandled, state: state)
  }

  private func describe(_ judgement: Judgement) -> String {
    switch judgement {
    case .ending(let ending, let denial): ending.state.rawValue + (denial.map { " (\($0.rawValue))" } ?? "")
    case .invalid(let why): "invalid answer: \(why)"
    }
  }
}
