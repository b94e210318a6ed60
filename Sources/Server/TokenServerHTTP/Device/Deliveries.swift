// SPDX-License-Identifier: Apache-2.0
import Logging
import ReferenceProtocol
import Synchronization
import TokenServerCore
import TokenServerStore

/// Notes, logs and measures which requests have reached their device: those of a list that was sent to it, and those
/// that it reports.
final class Deliveries: Sendable {
  /// The maximum number of lists whose requests are being noted. Those of further lists are noted with a later list.
  private static let capacity = 1000

  private let store: Store
  private let log: DeviceLog
  private let listed = Atomic(0)

  init(store: Store, log: DeviceLog) {
    self.store = store
    self.log = log
  }

  /// Notes the requests of a list, without a delay of its response. A failure is ignored: the next list has the request
  /// again, and nothing depends on a delivery.
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
  func note(_ transactions: some Sequence<String>, to clientID: ClientID, now: Timestamp) async throws {
    for id in transactions {
      let began = try await store.writeStatement(isUrgent: false) {
        try $0.noteDelivery(of: id, to: clientID, now: now)
      }
      guard let began else { continue }
      log.about(clientID).info("request \(id) has arrived at device \(clientID)")
      ServerMetrics.countDelivery(after: now - began)
    }
  }
}
