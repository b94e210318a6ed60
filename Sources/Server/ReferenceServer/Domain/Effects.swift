// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

/// The external effects of a committed change: device notifications and callbacks. They are collected inside the
/// database transaction and performed only after it is durable.
struct Effects: Sendable, Equatable {
  struct Notice: Sendable, Equatable {
    let clientID: String
    let event: DeviceEvent
  }

  var notices: [Notice] = []
  var callbacksDue = false
  /// Warnings for the log.
  var warnings: [String] = []

  mutating func notify(_ clientID: String, _ event: DeviceEvent) {
    notices.append(Notice(clientID: clientID, event: event))
  }

  mutating func add(_ other: Effects) {
    notices += other.notices
    callbacksDue = callbacksDue || other.callbacksDue
    warnings += other.warnings
  }
}
