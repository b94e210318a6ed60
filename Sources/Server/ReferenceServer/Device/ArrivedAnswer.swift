// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTPTypes
import Hummingbird
import ReferenceProtocol

/// An approval or denial as received from an authenticated device.
struct ArrivedAnswer: Sendable {
  let caller: DeviceGate.Caller
  let transactionID: String
  /// Its `Idempotency-Key`.
  let key: String
  let body: [UInt8]
  /// The hash of the body; it detects another body under the same key.
  let hash: [UInt8]
  /// When the answer arrived, milliseconds since 1970. Expiry is decided by this time, not by the end of the
  /// verification.
  let atMs: Int64

  init(_ request: Request, _ context: ServerContext, _ gate: DeviceGate) async throws {
    caller = try await gate.admit(request)
    atMs = gate.clock.nowMs()
    transactionID = try context.path("tid")
    guard let key = IdempotencyKey.parse(request.headers[.idempotencyKey]) else {
      throw DeviceAPIError(.invalidRequest, "Idempotency-Key must be a UUID")
    }
    self.key = key
    body = try await request.bytes()
    hash = SHA256.hash(Array(request.uri.path.utf8) + [0] + body)
  }
}
