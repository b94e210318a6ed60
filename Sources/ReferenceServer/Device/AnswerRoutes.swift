import Cryptography
import Foundation
import GRDB
import HTTPTypes
import Hummingbird
import Logging
import OpenPGP
import ReferenceProtocol

/// Answers and denials. Each carries an `Idempotency-Key`: the same key with the same body gets the stored verdict,
/// whatever has happened to the request since.
struct AnswerRoutes: Sendable {
  /// A blob that is not the device's answer does not close a request; this many do.
  static let badAnswersAllowed = 5

  let gate: DeviceGate
  let keyring: ServerKeyring
  let announcer: Announcer

  func add(to router: Router<ServerContext>) {
    router.post("/device/v1/requests/:tid/answers") { request, context in
      try await settle(request, context) { body, transaction, profile in
        try await judge(body, transaction, profile)
      }
    }
    router.post("/device/v1/requests/:tid/denials") { request, context in
      try await settle(request, context) { body, _, _ in
        .ending(.denied, try JSON.decode(Denial.self, from: body).reason)
      }
    }
  }

  private enum Judgement: Sendable {
    case ending(Ending, DenialReason?)
    case invalid(String)
  }

  private func judge(_ body: [UInt8], _ transaction: Transaction, _ profile: Profile) async throws -> Judgement {
    let sealed = try JSON.decode(SealedAnswer.self, from: body).answer
    guard let certificate = try keyring.certificate(of: profile), let serverKey = profile.serverKey else {
      throw DeviceRefusal(profile.isDisenrolled ? .disenrolled : .notEnrolled)
    }
    guard let message = bytes(base64: sealed) else { return .invalid("the answer is not Base64") }
    let plaintext: [UInt8]
    do { plaintext = try await keyring.key(serverKey).open(message, from: certificate, limit: 65_536) } catch {
      guard error is OpenPGPError else { throw error }
      return .invalid("the answer cannot be opened, or is not by the enrolled device")
    }
    do {
      // The request names the server as it was called when it asked.
      let issuer = try JSON.decode(ApprovalRequest.self, from: transaction.request).iss
      let (ending, denial) = try AnswerJudge.judge(plaintext, for: transaction, issuer: issuer)
      return .ending(ending, denial)
    } catch let refusal as AnswerJudge.Refusal { return .invalid(refusal.why) }
  }

  private func settle(
    _ request: Request, _ context: ServerContext,
    judge: @Sendable ([UInt8], Transaction, Profile) async throws -> Judgement
  ) async throws -> Response {
    let caller = try await gate.admit(request)
    let arrivedAtMs = gate.clock.nowMs()
    let key = try idempotencyKey(of: request)
    let body = try await request.bytes()
    let requestHash = SHA256.hash(Array(request.uri.path.utf8) + [0] + body)
    let clientID = caller.device.id
    if let known = try await gate.store.read({ try $0.verdict(key, of: clientID) }) {
      return try replay(known, requestHash: requestHash)
    }
    let transaction = try await gate.transaction(context.path("tid"), of: caller)
    try transaction.requireOpen(at: arrivedAtMs)
    let profile = try await caller.profile(transaction.profileID, in: gate.store)
    let judgement = try await judge(body, transaction, profile)
    let issuer = gate.origin.issuer
    let outcome = try await gate.store.write { database in
      try Self.record(
        judgement, of: transaction, key: key, requestHash: requestHash, issuer: issuer, nowMs: arrivedAtMs, in: database
      )
    }
    switch outcome {
    case .recorded(let verdict, let effects):
      announcer.announce(effects)
      announcer.log.info("transaction \(transaction.id): \(describe(judgement))")
      return response(verdict)
    case .known(let verdict): return try replay(verdict, requestHash: requestHash)
    case .tooLate(let state):
      throw DeviceRefusal(state == .expired ? .expired : .alreadyHandled, state: state)
    }
  }

  private enum Outcome: Sendable {
    case recorded(Verdict, Effects)
    /// The same key came twice at the same time, and the other one was first.
    case known(Verdict)
    case tooLate(RequestState)
  }

  /// Result, verdict and callback become durable together, before the device is told.
  private static func record(
    _ judgement: Judgement, of transaction: Transaction, key: String, requestHash: [UInt8], issuer: String,
    nowMs: Int64, in database: Database
  ) throws -> Outcome {
    if let known = try database.verdict(key, of: transaction.clientID) { return .known(known) }
    var effects: Effects?
    let verdict: Verdict
    switch judgement {
    case .ending(let ending, let denial):
      let settlement = Settlement(receipt: Random.uuid(), idempotencyKey: key, denial: denial)
      effects = try database.end(transaction, ending, settlement: settlement, nowMs: nowMs)
      let status = RequestStatus(state: ending.state, receipt: settlement.receipt, idempotencyKey: key)
      verdict = Verdict(requestHash: requestHash, status: 200, body: JSON.encode(status))
    case .invalid(let why):
      let count = try database.countBadAnswer(to: transaction.id)
      if count > 0 {
        effects =
          count < badAnswersAllowed ? Effects() : try database.end(transaction, .invalidAnswers, nowMs: nowMs)
      }
      let problem = Problem(.answerInvalid, issuer: issuer, detail: why)
      verdict = Verdict(requestHash: requestHash, status: problem.status, body: JSON.encode(problem))
    }
    guard let effects else {
      return .tooLate(try database.transaction(transaction.id)?.state(at: nowMs) ?? .expired)
    }
    try database.insert(verdict, key: key, clientID: transaction.clientID, nowMs: nowMs)
    return .recorded(verdict, effects)
  }

  private func replay(_ verdict: Verdict, requestHash: [UInt8]) throws(DeviceRefusal) -> Response {
    guard verdict.requestHash == requestHash else { throw DeviceRefusal(.idempotencyConflict) }
    return response(verdict)
  }

  private func response(_ verdict: Verdict) -> Response {
    verdict.status == 200
      ? .json(bytes: verdict.body)
      : .json(bytes: verdict.body, status: .init(code: verdict.status), type: "application/problem+json")
  }

  private func idempotencyKey(of request: Request) throws(DeviceRefusal) -> String {
    guard let key = request.headers[.idempotencyKey], let uuid = UUID(uuidString: key) else {
      throw DeviceRefusal(.invalidRequest, "Idempotency-Key must be a UUID")
    }
    return uuid.uuidString.lowercased()
  }

  private func describe(_ judgement: Judgement) -> String {
    switch judgement {
    case .ending(let ending, let denial): ending.state.rawValue + (denial.map { " (\($0.rawValue))" } ?? "")
    case .invalid(let why): "invalid answer: \(why)"
    }
  }
}
