// SPDX-License-Identifier: Apache-2.0
package import Logging

/// Performs the effects of committed changes.
package protocol Announcer: Sendable {
  var log: Logger { get }
  /// For lines that a device can cause again and again.
  var deviceLog: DeviceLog { get }

  /// Whether the device is expected to receive hints immediately.
  func reaches(_ clientID: ClientID) -> Bool

  func announce(_ effects: Effects)
}

/// Ends requests and pending profiles at their expiry times.
package protocol ExpirySchedule: Sendable {
  /// Schedules a wake-up for a new expiry time.
  func expect(at time: Timestamp)
}
