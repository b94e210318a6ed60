// SPDX-License-Identifier: Apache-2.0
import Logging
import ReferenceProtocol
import Synchronization
import TokenServerCore
import TokenServerStore

/// Notes, logs and measures when a request was delivered: sent to its device in a list, or reported by a device of an
/// earlier version.
final class Deliveries: Sendable {
  /// The maximum number of lists whose requests are being noted. Those of others are noted with a later list, if their
  /// device reads one.
  private static let capacity = 1000

  private let store: Store
  private let log: DeviceLog
  private let listed = Atomic(0)

  init(store: Store, log: DeviceLog) {
    self.store = store
    self.log = log
  }

  /// Notes the requests of a list, without a delay of its response. A failure is ignored: nothing but the log and the
  /// metrics depends on it.
  func noteLater(_ transactions: [String], to clientID: ClientID, now: Timestamp) {
    guard listed.wrappingAdd(1, ordering: .relaxed).newValue <= Self.capacity else {
      listed.wrappingSubtract(1, ordering: .relaxed)
      return
    }
    Task {
      defer { listed.wrappingSubtract(1, ordering: .relaxed) }
      try? await note(transactions, to: clientID, now: now)
    }
  }

  /// Requests of other devices, those that have ended, and those that are noted already are ignored.
  func note(_ transactions: [String], to clientID: ClientID, now: Timestamp) async throws {
    let noted = try await store.writeStatement(isUrgent: false) {
      try $0.noteDelivery(of: transactions, to: clientID, now: now)
    }
    for (id, began) in noted {
      log.about(clientID).info("request \(id) was delivered to device \(clientID)")
      ServerMetrics.countDelivery(after: now - began)
    }
  }
}
