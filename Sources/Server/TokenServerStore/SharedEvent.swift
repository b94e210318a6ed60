// SPDX-License-Identifier: Apache-2.0
package import TokenServerCore

/// An event for a device that may be connected to another server.
package struct SharedEvent: Sendable, Equatable {
  package let notice: Effects.Notice
  /// Whether a server has taken over the publication of its hint at the MQTT broker.
  package var isMailed: Bool

  package init(_ notice: Effects.Notice, isMailed: Bool) {
    self.notice = notice
    self.isMailed = isMailed
  }
}

/// The payload of a notification that events were posted: which devices they are for, so that a server that has none of
/// these need not read the events.
struct PostedEvents: Sendable, Equatable {
  /// The channel of NOTIFY.
  static let channel = "token_server"
  /// PostgreSQL's limit, in bytes.
  private static let longest = 7999

  /// The id of the server that posted them.
  let server: String
  let devices: Set<ClientID>

  init(of server: String, for devices: Set<ClientID>) {
    self.server = server
    self.devices = devices
  }

  /// - Returns: nil for a payload that names no devices: there may be events for any.
  init?(_ payload: String) {
    var words = payload.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    guard words.count > 1 else { return nil }
    server = words.removeFirst()
    devices = Set(words.map { ClientID($0) })
  }

  /// Empty if it would be too long.
  var payload: String {
    let text = ([server] + devices.map(\.text)).joined(separator: " ")
    return text.utf8.count > Self.longest ? "" : text
  }
}
