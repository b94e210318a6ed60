import ReferenceProtocol

/// The last events of one device, and what of them came after a cursor.
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

  /// Names the last event.
  /// - Parameter epoch: tells cursors of this process from those of an earlier one.
  func cursor(in epoch: String) -> String { "\(epoch).\(lastEvent)" }

  /// - Parameter cursor: the last event that the device has seen, as the device says; nil if it knows none.
  /// - Returns: `resync` alone for a cursor of another epoch, one that was never given out, and one that is too old.
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
