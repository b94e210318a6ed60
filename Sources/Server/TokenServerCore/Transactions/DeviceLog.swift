// SPDX-License-Identifier: Apache-2.0
package import Logging
import Synchronization

/// The log lines that clients cause by requests that they can repeat, limited for each device, and for all other
/// clients together: any of them could fill the disk.
package final class DeviceLog: Sendable {
  /// The maximum number of lines in an hour about one device, or about all other clients.
  package static let hourly = 240
  /// The maximum number of devices that are counted at the same time.
  private static let capacity = 100_000

  private struct Hour {
    let began: Duration
    var lines = 0
  }

  private let log: Logger
  private let others: String
  private let uptime: @Sendable () -> Duration
  /// Nil stands for all clients that are not authenticated devices.
  private let hours = Mutex<[ClientID?: Hour]>([:])

  /// - Parameters:
  ///   - others: what the lines that are about no device are about.
  ///   - uptime: a monotonic clock.
  package init(
    _ log: Logger, others: String = "clients that are not authenticated devices",
    uptime: @escaping @Sendable () -> Duration = Uptime.now
  ) {
    self.log = log
    self.others = others
    self.uptime = uptime
  }

  /// - Parameter clientID: nil for a client that is not an authenticated device.
  /// - Returns: a logger for one line; one that drops the line if there were too many.
  package func about(_ clientID: ClientID?) -> Logger {
    let now = uptime()
    let lines = hours.withLock { hours -> Int in
      if hours[clientID].map({ now - $0.began >= .seconds(3600) }) ?? true {
        if hours.count >= Self.capacity { hours = hours.filter { now - $0.value.began < .seconds(3600) } }
        if hours.count >= Self.capacity { hours = [:] }
        hours[clientID] = Hour(began: now)
      }
      hours[clientID]?.lines += 1
      return hours[clientID]?.lines ?? 0
    }
    guard lines > Self.hourly else { return log }
    if lines == Self.hourly + 1 {
      let whom = clientID.map { "the device \($0)" } ?? others
      log.warning("more than \(Self.hourly) lines about \(whom) in an hour: the next ones are dropped")
    }
    return Logger(label: "dropped") { _ in SwiftLogNoOpLogHandler() }
  }
}
