import ReferenceProtocol

/// What a committed change means for others: devices to tell, callbacks to send. Collected inside the database
/// transaction, acted upon only after it is durable.
struct Effects: Sendable, Equatable {
  struct Notice: Sendable, Equatable {
    let clientID: String
    let event: DeviceEvent
  }

  var notices: [Notice] = []
  var callbacksDue = false
  /// For the log.
  var warnings: [String] = []

  mutating func tell(_ clientID: String, _ event: DeviceEvent) {
    notices.append(Notice(clientID: clientID, event: event))
  }

  mutating func add(_ other: Effects) {
    notices += other.notices
    callbacksDue = callbacksDue || other.callbacksDue
    warnings += other.warnings
  }
}
