import Cryptography
import HTTPTypes
import Hummingbird
import ReferenceProtocol

/// An answer or a denial as it came in, from a device that was let in.
struct ArrivedAnswer: Sendable {
  let caller: DeviceGate.Caller
  let transactionID: String
  /// Its `Idempotency-Key`.
  let key: String
  let body: [UInt8]
  /// What tells it from another with the same key.
  let hash: [UInt8]
  /// Whether it was in time is decided by this moment, however long it is looked at.
  let atMs: Int64

  init(_ request: Request, _ context: ServerContext, _ gate: DeviceGate) async throws {
    caller = try await gate.admit(request)
    atMs = gate.clock.nowMs()
    transactionID = try context.path("tid")
    guard let key = IdempotencyKey.parse(request.headers[.idempotencyKey]) else {
      throw DeviceRefusal(.invalidRequest, "Idempotency-Key must be a UUID")
    }
    self.key = key
    body = try await request.bytes()
    hash = SHA256.hash(Array(request.uri.path.utf8) + [0] + body)
  }
}
