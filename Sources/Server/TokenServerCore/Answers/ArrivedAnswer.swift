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
  /// An answer after the expiry is refused by this time. One before it is refused, too, if its verification ends only
  /// after the request was ended as expired.
  package let arrivedAt: Timestamp

  package init(
    clientID: ClientID, transactionID: String, key: String, body: [UInt8], hash: [UInt8], arrivedAt: Timestamp
  ) {
    self.clientID = clientID
    self.transactionID = transactionID
    self.key = key
    self.body = body
    self.hash = hash
    self.arrivedAt = arrivedAt
  }
}
