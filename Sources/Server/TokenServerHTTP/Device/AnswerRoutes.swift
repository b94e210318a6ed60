// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTPTypes
import Hummingbird
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// The routes for approvals and denials.
struct AnswerRoutes: Sendable {
  let gate: DeviceGate
  let answers: AnswerService

  func add(to router: Router<ServerContext>) {
    router.post("/device/v1/requests/:tid/answers") { request, context in
      let (arrival, found) = try await receive(request, context)
      return try await answers.answer(arrival, found).response()
    }
    router.post("/device/v1/requests/:tid/denials") { request, context in
      let (arrival, found) = try await receive(request, context)
      return try await answers.deny(arrival, found).response()
    }
  }

  /// Authenticates the device, finds what its answer needs, and reads the body.
  private func receive(
    _ request: Request, _ context: ServerContext
  ) async throws -> (ArrivedAnswer, AnswerService.Found) {
    let arrivedAt = gate.clock.now()
    let (caller, (transactionID, key, found)) = try await gate.admit(request) { records, caller in
      let transactionID = try context.path("tid")
      guard let key = IdempotencyKey.parse(request.headers[.idempotencyKey]) else {
        throw DeviceAPIError(.invalidRequest, "Idempotency-Key must be a UUID")
      }
      let found = try AnswerService.find(key, to: transactionID, of: caller.clientID, at: arrivedAt, in: records)
      return (transactionID, key, found)
    }
    let body = try await request.bytes()
    let arrival = ArrivedAnswer(
      clientID: caller.clientID, transactionID: transactionID, key: key, body: body,
      hash: SHA256.hash(Array(request.uri.path.utf8) + [0] + body), arrivedAt: arrivedAt)
    return (arrival, found)
  }
}
