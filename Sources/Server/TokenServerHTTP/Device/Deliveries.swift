// SPDX-License-Identifier: Apache-2.0
import Logging
import Synchronization
import TokenServerCore
import TokenServerStore

/// Notes, logs and measures when a request was delivered: sent to its device in a list, or reported by a device of an
/// earlier version.
final class Deliveries: Sendable {
  /// The maximum number of lists whose requests are being noted. Requests of further lists are noted with a later list,
  /// if their device reads one.
  private static let capacity = 1000

  private let store: Store
  private let log: DeviceLog
  /// The number of lists whose requests are being noted.
  private let lists = Atomic(0)

  init(store: Store, log: DeviceLog) {
    self.store = store
    self.log = log
  }

  /// Notes the requests of a list, without a delay of its response. A failure is ignored: only what administrators read
  /// depends on the note.
  func noteLater(_ transactions: [String], to clientID: ClientID, now: Timestamp) {
    guard lists.wrappingAdd(1, ordering: .relaxed).newValue <= Self.capacity else {
      lists.wrappingSubtract(1, ordering: .relaxed)
      return
    }
    Task {
      defer { lists.wrappingSubtract(1, ordering: .relaxed) }
      try? await note(transactions, to: clientID, now: now)
    }
  }

  /// Requests of other devices, those that have ended, and those that are noted already are ignored.
  func note(_ transactions: [String], to clientID: ClientID, now: Timestamp) async throws {
    let noted = try await store.writeStatement(isUrgent: false) {
      try $0.noteDelivery(of: transactions, to: clientID, now: now)
    }
    for (id, start) in noted {
      log.about(clientID).info("request \(id) was delivered to device \(clientID)")
      ServerMetrics.countDelivery(after: now - start)
    }
  }
}
