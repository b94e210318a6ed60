// SPDX-License-Identifier: Apache-2.0
package import TokenServerCore

/// An event for a device that may be connected to another server.
package struct SharedEvent: Sendable, Equatable {
  /// The channel of NOTIFY.
  package static let channel = "token_server"

  package let notice: Effects.Notice
  /// Whether it was published at the MQTT broker already.
  package let isMailed: Bool

  package init(_ notice: Effects.Notice, isMailed: Bool) {
    self.notice = notice
    self.isMailed = isMailed
  }
}
