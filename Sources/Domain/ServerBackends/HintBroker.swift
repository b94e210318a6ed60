// SPDX-License-Identifier: Apache-2.0
/// An MQTT broker that delivers hints, in addition to or instead of the event stream.
package protocol HintBroker: Sendable {
  /// Whether the event stream is not used while a mailbox (MQTT topic) exists.
  var replacesEventStream: Bool { get }

  /// Reads one mailbox (MQTT topic) over one connection, until the connection ends.
  /// - Parameters:
  ///   - device: the token server's client ID of the mailbox's device.
  ///   - isUp: called when the subscription is active; messages published earlier may follow.
  ///   - take: called with each message.
  /// - Returns: why the connection ended.
  func read(
    _ mailbox: String, of device: String, isUp: @escaping @Sendable () -> Void,
    take: @escaping @Sendable ([UInt8]) -> Void
  ) async -> String
}
