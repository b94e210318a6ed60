// SPDX-License-Identifier: Apache-2.0
package import ReferenceProtocol

/// The external effects of a committed change: device notifications and callbacks. They are collected inside the
/// database transaction and performed only after it is durable.
package struct Effects: Sendable, Equatable {
  package struct Notice: Sendable, Equatable {
    package let clientID: ClientID
    package let event: DeviceEvent

    package init(clientID: ClientID, event: DeviceEvent) {
      self.clientID = clientID
      self.event = event
    }
  }

  /// A transaction that ended, for the metrics.
  package struct Ending: Sendable, Equatable {
    package let state: RequestState
    /// Since it was created.
    package let after: Duration
  }

  package var notices: [Notice] = []
  package var callbacksDue = false
  package var endings: [Ending] = []
  /// Warnings for the log.
  package var warnings: [String] = []

  package init(notices: [Notice] = [], callbacksDue: Bool = false, warnings: [String] = []) {
    self.notices = notices
    self.callbacksDue = callbacksDue
    self.warnings = warnings
  }

  package mutating func notify(_ clientID: ClientID, _ event: DeviceEvent) {
    notices.append(Notice(clientID: clientID, event: event))
  }

  package mutating func add(_ other: Effects) {
    notices += other.notices
    callbacksDue = callbacksDue || other.callbacksDue
    endings += other.endings
    warnings += other.warnings
  }
}
