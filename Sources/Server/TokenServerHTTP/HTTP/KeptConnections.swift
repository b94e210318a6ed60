// SPDX-License-Identifier: Apache-2.0
/// Idle connections of devices, at most one for each, in the order in which they became idle.
struct KeptConnections {
  typealias Close = @Sendable () -> Void

  private var connections: [UInt64: (device: String, close: Close)] = [:]
  private var numbers: [String: UInt64] = [:]
  /// The lowest number of a connection; `next` if there is none.
  private var oldest: UInt64 = 0
  private var next: UInt64 = 0

  /// Requires that there is none of this device.
  /// - Returns: the connection's number. No two connections get the same.
  mutating func insert(_ close: @escaping Close, for device: String) -> UInt64 {
    defer { next += 1 }
    connections[next] = (device, close)
    numbers[device] = next
    return next
  }

  /// - Returns: whether the connection was kept.
  mutating func remove(_ number: UInt64) -> Bool { take(number) != nil }

  mutating func remove(of device: String) -> Close? { numbers[device].flatMap { take($0) } }

  mutating func removeOldest() -> Close? { take(oldest) }

  private mutating func take(_ number: UInt64) -> Close? {
    guard let connection = connections.removeValue(forKey: number) else { return nil }
    numbers[connection.device] = nil
    while oldest < next, connections[oldest] == nil { oldest += 1 }
    return connection.close
  }
}
