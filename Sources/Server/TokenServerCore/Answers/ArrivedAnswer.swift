// SPDX-License-Identifier: Apache-2.0

/// An approval or denial as received from an authenticated device.
package struct ArrivedAnswer: Sendable {
  /// The device that sent it.
  package let clientID: ClientID
  package let transactionID: String
  /// Its `Idempotency-Key`.
  package let key: String
  package let body: [UInt8]
  /// The hash of the body; it detects another body under the same key.
  package let hash: [UInt8]
  /// When the answer arrived, milliseconds since 1970. Expiry is decided by this time, not by the end of the
  /// verification.
  package let atMs: Int64

  package init(clientID: ClientID, transactionID: String, key: String, body: [UInt8], hash: [UInt8], atMs: Int64) {
    self.clientID = clientID
    self.transactionID = transactionID
    self.key = key
    self.body = body
    self.hash = hash
    self.atMs = atMs
  }
}
