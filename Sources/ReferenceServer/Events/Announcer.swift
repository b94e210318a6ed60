import Logging
import ReferenceProtocol

/// Acts on what a committed change means for others.
struct Announcer: Sendable {
  let hub: EventHub
  let callbacks: WakeUp
  let log: Logger

  func announce(_ effects: Effects) {
    for notice in effects.notices {
      hub.publish(notice.event, to: notice.clientID)
      if notice.event.kind == .deviceRevoked { hub.hangUp(notice.clientID) }
    }
    if effects.callbacksDue { callbacks.ring() }
  }
}
