// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTPTypes
import Hummingbird
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

extension ArrivedAnswer {
  init(_ request: Request, _ context: ServerContext, _ gate: DeviceGate) async throws {
    let clientID = try await gate.admit(request).clientID
    let arrivedAt = gate.clock.now()
    let transactionID = try context.path("tid")
    guard let key = IdempotencyKey.parse(request.headers[.idempotencyKey]) else {
      throw DeviceAPIError(.invalidRequest, "Idempotency-Key must be a UUID")
    }
    let body = try await request.bytes()
    self.init(
      clientID: clientID, transactionID: transactionID, key: key, body: body,
      hash: SHA256.hash(Array(request.uri.path.utf8) + [0] + body), arrivedAt: arrivedAt)
  }
}
