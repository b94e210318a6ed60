import Logging
import ReferenceProtocol

/// Acts on what a committed change means for others.
struct Announcer: Sendable {
  let hub: EventHub
  /// Nil without a broker.
  var mailboxes: Mailboxes?
  let callbacks: WakeUp
  let log: Logger

  /// Whether the device hears of something new at once, as far as anybody can tell: a broker does not say.
  func reaches(_ clientID: String) -> Bool {
    hub.isListening(clientID) || mailboxes?.isWanted(by: clientID) == true
  }

  func announce(_ effects: Effects) {
    for notice in effects.notices {
      hub.publish(notice.event, to: notice.clientID)
      mailboxes?.publish(notice.event.kind, to: notice.clientID)
      if notice.event.kind == .deviceRevoked { hub.hangUp(notice.clientID) }
    }
    if effects.callbacksDue { callbacks.ring() }
    for warning in effects.warnings { log.warning("\(warning)") }
  }
}
