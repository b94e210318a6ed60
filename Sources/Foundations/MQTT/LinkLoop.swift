// SPDX-License-Identifier: Apache-2.0
import Glibc
import Threads

/// The main loop of a connection's thread. It sleeps in poll(2) until there is work for the socket, the task or the
/// keepalive. An idle connection wakes twice per keepalive, for PINGREQ and for PINGRESP.
final class LinkLoop {
  private let link: Link
  private(set) var client: Client?
  /// The error that ends the connection.
  private var failure: BrokerError?
  /// Whether the broker has accepted the connection.
  private var isConnected = false
  /// As `LinkEvent.up`.
  private var isUp = false
  private var topics: TopicSubscriptions
  private var setUpDeadline: ContinuousClock.Instant
  /// As `Session.keepalive`, or what the broker has set; 0 for no PINGREQ.
  private var keepalive: UInt16
  private var keepaliveDue = ContinuousClock.now
  /// Published messages without acknowledgment, by packet identifier.
  private var underWay: [Int32: Post] = [:]

  init(_ link: Link) {
    self.link = link
    topics = TopicSubscriptions(link.session.topics, at: .now)
    setUpDeadline = .now + link.session.setUpLimit
    keepalive = link.session.keepalive
  }

  /// - Returns: the error that ended the connection.
  func run() -> BrokerError {
    // Close the socket before the task is notified: the next connection must not overlap with this one.
    defer { client = nil }
    do throws(BrokerError) {
      let client = try Client(link.session, owner: self)
      self.client = client
      try link.stuck { (plan) throws(BrokerError) in
        try client.connect(link.session, from: plan.source)
        if plan.patience > 1 { setUpDeadline = .now + link.session.setUpLimit }
      }
      try serve(client)
    } catch { return failure ?? error }
  }

  private func serve(_ client: Client) throws(BrokerError) -> Never {
    postponeKeepalive()
    while true {
      if link.isClosed {
        // Acknowledge stored messages, so that they are not sent again.
        if isConnected { try write(client) }
        throw .closed
      }
      if isConnected { requestTopics(client) }
      if let failure { throw failure }
      if isUp { try publishPosts(client) }
      try write(client)
      let nextStep = isUp ? topics.nextRequest ?? keepaliveDue : setUpDeadline
      let socket = sleep(client, until: isConnected ? min(nextStep, keepaliveDue) : nextStep)
      let isInHandshake = client.isInHandshake
      if socket & ~POLLOUT != 0 || isInHandshake && socket != 0 { try client.read() }
      if let failure { throw failure }
      if client.socket < 0 { throw .unreachable("it ended the connection") }
      if isInHandshake, client.isInHandshake, socket & (POLLHUP | POLLERR) != 0 {
        // Without this check libmosquitto would continue to try.
        throw .unreachable("it closed the connection during the TLS handshake")
      }
      if !isUp, .now >= setUpDeadline { throw link.session.lateness() }
      if isConnected, .now >= keepaliveDue {
        try client.serviceKeepalive()
        postponeKeepalive()
      }
    }
  }

  private func write(_ client: Client) throws(BrokerError) {
    guard client.wantsToWrite else { return }
    try client.write()
    if let failure { throw failure }
    postponeKeepalive()
  }

  /// libmosquitto counts whole seconds from the last packet; a broker ends the connection after one and a half times
  /// the keepalive (MQTT 5 §3.1.2.10). Without a keepalive, the thread wakes after 18 hours and does nothing.
  private func postponeKeepalive() {
    let pause = Duration.seconds(keepalive == 0 ? UInt16.max : keepalive)
    keepaliveDue = ContinuousClock.now + pause + min(.seconds(1), pause / 4)
  }

  /// Waits for the socket. While the broker does not read what is written, nothing of it is read: libmosquitto would
  /// queue an acknowledgment for each of its messages, without a limit.
  /// - Returns: the events of poll(2) for the socket.
  private func sleep(_ client: Client, until moment: ContinuousClock.Instant) -> Int32 {
    let events = !client.wantsToWrite ? POLLIN : isConnected ? POLLOUT : POLLIN | POLLOUT
    var descriptors = [
      pollfd(fd: client.socket, events: Int16(events), revents: 0),
      pollfd(fd: link.wakeUp, events: Int16(POLLIN), revents: 0),
    ]
    guard poll(&descriptors, 2, (moment - .now).pollMilliseconds) > 0 else { return 0 }
    if descriptors[1].revents != 0 { link.emptyWakeUp() }
    return Int32(descriptors[0].revents)
  }

  private func publishPosts(_ client: Client) throws(BrokerError) {
    for post in link.takePosts() {
      do throws(BrokerError) {
        underWay[try client.publish(post.payload, to: post.topic, retained: post.isRetained)] = post
      } catch .unusable {
        link.put(.published(post, isAccepted: false))
      }
    }
  }

  // MARK: libmosquitto callbacks

  /// - Parameter keepalive: the broker's, which libmosquitto already uses; nil if the broker accepts the client's.
  func hasConnected(_ reason: Int32, keepalive: UInt16?) {
    guard reason == 0 else { return failure = BrokerError(connectReason: reason) }
    isConnected = true
    if let keepalive {
      self.keepalive = keepalive
      if keepalive == 0 || keepalive > link.session.keepalive { client?.probe() }
      postponeKeepalive()
    }
    if link.session.topics.isEmpty { isReady() }
  }

  /// Subscribes to the topics for which that is due. An invalid topic counts as refused.
  private func requestTopics(_ client: Client) {
    for topic in topics.takeDue(at: .now) {
      do throws(BrokerError) {
        topics.note(request: try client.subscribe(to: topic, link.session.broker.version), of: topic)
      } catch {
        guard case .unusable = error else { return failure = error }
        refuse(topic, because: error)
      }
    }
  }

  private func refuse(_ topic: String, because reason: BrokerError) {
    topics.noteRefusal(of: topic, at: .now)
    if topics.areAllRefused { failure = reason } else { link.put(.mayNotRead(topic)) }
  }

  func hasSubscribed(_ number: Int32, isGranted: Bool) {
    guard let topic = topics.noteAnswer(to: number) else { return }
    guard isGranted else { return refuse(topic, because: .mayNotRead(topic: topic)) }
    topics.noteGrant(of: topic)
    if !isUp { isReady() }
    if let presence = link.session.presence { publish(presence, atPresenceOf: topic) }
    link.put(.subscribed(topic))
  }

  private func publish(_ text: String, atPresenceOf topic: String) {
    attempt { client throws(BrokerError) in
      _ = try client.publish(Array(text.utf8), to: "\(topic)/presence", retained: true)
    }
  }

  /// Ends a subscription that the broker has kept of an earlier connection with other topics.
  private func leave(_ topic: String) {
    attempt { client throws(BrokerError) in try client.unsubscribe(from: topic) }
    // An empty message removes the retained one.
    if link.session.presence != nil { publish("", atPresenceOf: topic) }
  }

  private func isReady() {
    if let topic = link.session.presence {
      attempt { client throws(BrokerError) in _ = try client.publish(Array("online".utf8), to: topic, retained: true) }
    }
    isUp = true
    link.put(.up)
  }

  func received(_ payload: UnsafeRawBufferPointer, from topic: String, isRetained: Bool) {
    // One read may contain several messages. After one that was not stored, the others must not be acknowledged either.
    guard failure == nil, !isRetained else { return }
    guard topics.contains(topic) else {
      if topics.noteOther(topic) { leave(topic) }
      return
    }
    guard payload.count <= Subscriber.maximumMessageBytes else { return link.put(.oversize(payload.count)) }
    link.put(.message(Array(payload), from: topic))
    if !link.isLastMessageTaken() { failure = link.isClosed ? .closed : .notTaken }
  }

  func wasAcknowledged(_ number: Int32, isAccepted: Bool) {
    if let post = underWay.removeValue(forKey: number) { link.put(.published(post, isAccepted: isAccepted)) }
  }

  /// - Parameter reason: a reason code of the broker if at least 0x80, otherwise an error code of libmosquitto.
  func hasDisconnected(_ reason: Int32) {
    if failure == nil, reason >= 0x80 { failure = BrokerError(disconnectReason: reason) }
  }

  private func attempt(_ call: (Client) throws(BrokerError) -> Void) {
    guard let client else { return }
    do throws(BrokerError) { try call(client) } catch { failure = error }
  }
}
