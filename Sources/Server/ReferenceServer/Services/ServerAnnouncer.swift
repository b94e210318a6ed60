// SPDX-License-Identifier: Apache-2.0
import Logging
import ReferenceProtocol
import TokenServerCore
import TokenServerHTTP
import TokenServerStore

/// Performs the effects of committed changes.
struct ServerAnnouncer: Announcer {
  let hub: EventHub
  /// Nil without a broker.
  let mailboxPublisher: MailboxPublisher?
  let callbacks: AsyncSignal
  /// Nil if no other server uses the database.
  let otherServers: EventSharing?
  let log: Logger
  let deviceLog: DeviceLog

  init(
    hub: EventHub, mailboxPublisher: MailboxPublisher? = nil, callbacks: AsyncSignal,
    otherServers: EventSharing? = nil, log: Logger, deviceLog: DeviceLog? = nil
  ) {
    self.hub = hub
    self.mailboxPublisher = mailboxPublisher
    self.callbacks = callbacks
    self.otherServers = otherServers
    self.log = log
    self.deviceLog = deviceLog ?? DeviceLog(log)
  }

  /// Whether the device is expected to receive hints immediately. A broker does not report whether a device is
  /// connected.
  func reaches(_ clientID: ClientID) -> Bool {
    hub.isListening(clientID) || mailboxPublisher?.isWanted(by: clientID) == true
  }

  func announce(_ effects: Effects) {
    for notice in effects.notices {
      let isMailed = mailboxPublisher?.publish(notice.event.kind, to: notice.clientID) ?? false
      announceHere(notice)
      otherServers?.post(SharedEvent(notice, isMailed: isMailed))
    }
    if effects.callbacksDue { callbacks.ring() }
    for ending in effects.endings { ServerMetrics.count(ending) }
    for warning in effects.warnings { log.warning("\(warning)") }
  }

  /// Whether an event for the device has an effect at this server.
  func concerns(_ clientID: ClientID) -> Bool {
    hub.knows(clientID) || mailboxPublisher?.isWanted(by: clientID) == true
  }

  /// Announces an event to a device that is connected to this server.
  func announceHere(_ notice: Effects.Notice) {
    hub.publish(notice.event, to: notice.clientID)
    if notice.event.kind == .deviceRevoked { hub.remove(notice.clientID) }
  }
}
