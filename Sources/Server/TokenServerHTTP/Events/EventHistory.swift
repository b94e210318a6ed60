// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

/// The last events of one device, selected by a cursor.
struct EventHistory: Sendable {
  /// The number of events kept for a device that reconnects with a cursor.
  static let remembered = 16

  private var lastEvent: UInt64 = 0
  private var recent: [(number: UInt64, event: DeviceEvent)] = []

  mutating func note(_ event: DeviceEvent) {
    lastEvent += 1
    recent.append((lastEvent, event))
    if recent.count > Self.remembered { recent.removeFirst() }
  }

  /// Returns the cursor of the last event.
  /// - Parameter epoch: distinguishes cursors of this process from those of an earlier process.
  func cursor(in epoch: String) -> String { "\(epoch).\(lastEvent)" }

  /// Returns the events after a cursor.
  /// - Parameter cursor: the cursor that the device sent; nil without a cursor.
  /// - Returns: only `resync` if the cursor is of another epoch, was never issued, or is too old.
  func events(after cursor: String?, in epoch: String) -> EventPage {
    let now = self.cursor(in: epoch)
    guard let cursor else { return EventPage(cursor: now, events: []) }
    let parts = cursor.split(separator: ".")
    guard parts.count == 2, parts[0] == epoch, let seen = UInt64(parts[1]), seen <= lastEvent,
      lastEvent - seen <= UInt64(recent.count)
    else { return EventPage(cursor: now, events: [DeviceEvent(.resync)]) }
    return EventPage(cursor: now, events: recent.filter { $0.number > seen }.map(\.event))
  }
}
