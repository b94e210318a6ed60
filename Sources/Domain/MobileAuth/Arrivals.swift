// SPDX-License-Identifier: Apache-2.0
/// The order in which this token first saw the listed requests, and what happened to them since. Kept while the
/// accounts are reloaded.
struct Arrivals {
  private struct Arrival {
    let server: TokenServerID
    /// Increases with every request that this token sees for the first time. The order does not depend on the server's
    /// timestamps.
    let number: Int
    var wasAnnounced = false
    var keepsPanel = false
    var heldUntil: MonotonicInstant?
    var wasPINAsked = false
  }

  private var all: [TransactionID: Arrival] = [:]
  private var last = 0

  /// Replaces the requests of a server.
  /// - Parameter list: newest first; new requests are therefore numbered from the end.
  mutating func replace(of server: TokenServerID, _ list: some BidirectionalCollection<PendingMobileAuthRequest>) {
    let former = all
    all = former.filter { $0.value.server != server }
    for request in list.reversed() {
      let transaction = request.transaction
      if former[transaction] == nil { last += 1 }
      all[transaction] = former[transaction] ?? Arrival(server: server, number: last)
    }
  }

  func isNewer(_ one: PendingMobileAuthRequest, than other: PendingMobileAuthRequest) -> Bool {
    (number(of: one.transaction), other.transaction.text) > (number(of: other.transaction), one.transaction.text)
  }

  func wasAnnounced(_ transaction: TransactionID) -> Bool { all[transaction]?.wasAnnounced ?? false }
  mutating func noteAnnounced(_ transaction: TransactionID) { all[transaction]?.wasAnnounced = true }

  /// The arrival number; 0 if the request is not listed.
  func number(of transaction: TransactionID) -> Int { all[transaction]?.number ?? 0 }

  func keepsPanel(_ transaction: TransactionID) -> Bool { all[transaction]?.keepsPanel ?? false }
  mutating func keepOnPanel(_ transaction: TransactionID) { all[transaction]?.keepsPanel = true }

  func wasPINAsked(_ transaction: TransactionID) -> Bool { all[transaction]?.wasPINAsked ?? false }
  mutating func notePINAsked(_ transaction: TransactionID) { all[transaction]?.wasPINAsked = true }

  func holdEnd(of transaction: TransactionID) -> MonotonicInstant? { all[transaction]?.heldUntil }
  mutating func hold(_ transaction: TransactionID, until end: MonotonicInstant) { all[transaction]?.heldUntil = end }
}
