import Glibc

/// The life of a connection's thread. It sleeps in poll(2) until the socket, the task or the keepalive wants something:
/// an idle connection wakes twice per keepalive, for the question and for the answer.
final class LinkLoop {
  private let link: Link
  private(set) var client: Client?
  /// Why the connection ends.
  private var failure: BrokerError?
  private var isUp = false
  private var keepaliveDue = ContinuousClock.now
  /// Published and not yet acknowledged, by libmosquitto's number.
  private var underWay: [Int32: Post] = [:]

  init(_ link: Link) {
    self.link = link
  }

  /// - Returns: why it ended.
  func run() -> BrokerError {
    // Before the task hears that it ended, the socket is closed: the next connection must not meet this one.
    defer { client = nil }
    do throws(BrokerError) {
      let client = try Client(link.session, owner: self)
      self.client = client
      try link.stuck { () throws(BrokerError) in try client.connect(link.session) }
      try serve(client)
    } catch { return failure ?? error }
  }

  private func serve(_ client: Client) throws(BrokerError) -> Never {
    let setUpDeadline = ContinuousClock.now + Session.setUpLimit
    postponeKeepalive()
    while true {
      if link.isClosed {
        // What is durable need not come again.
        if isUp { try write(client) }
        throw .closed
      }
      if isUp { try publishPosts(client) }
      try write(client)
      let socket = sleep(client, until: isUp ? keepaliveDue : setUpDeadline)
      let isInHandshake = client.isInHandshake
      if socket != 0 { try client.read() }
      if let failure { throw failure }
      if isInHandshake, client.isInHandshake, socket & (POLLHUP | POLLERR) != 0 {
        // libmosquitto would go on trying.
        throw .unreachable("it hung up during the TLS handshake")
      }
      if !isUp, .now >= setUpDeadline { throw .unreachable("no connection within \(Session.setUpLimit)") }
      if .now >= keepaliveDue { try client.lookAfterKeepalive() }
    }
  }

  private func write(_ client: Client) throws(BrokerError) {
    guard client.wantsToWrite else { return }
    try client.write()
    if let failure { throw failure }
    postponeKeepalive()
  }

  /// libmosquitto counts whole seconds from the last packet it has sent.
  private func postponeKeepalive() { keepaliveDue = .now + Session.keepalive + .seconds(1) }

  /// - Returns: what poll(2) says of the socket.
  private func sleep(_ client: Client, until moment: ContinuousClock.Instant) -> Int32 {
    let events = POLLIN | (client.wantsToWrite ? POLLOUT : 0)
    var descriptors = [
      pollfd(fd: client.socket, events: Int16(events), revents: 0),
      pollfd(fd: link.wakeUp, events: Int16(POLLIN), revents: 0),
    ]
    let (seconds, attoseconds) = max(.zero, moment - .now).components
    let milliseconds = seconds * 1000 + attoseconds / 1_000_000_000_000_000 + 1
    guard poll(&descriptors, 2, Int32(clamping: milliseconds)) > 0 else { return 0 }
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

  // MARK: What libmosquitto calls

  func hasConnected(_ reason: Int32) {
    guard reason == 0 else { return failure = BrokerError(connectReason: reason) }
    guard let topic = link.session.mailbox else { return isReady() }
    attempt { client throws(BrokerError) in try client.subscribe(to: topic, link.session.broker.version) }
  }

  func hasSubscribed(isGranted: Bool) {
    if isGranted { isReady() } else { failure = .mayNotRead(topic: link.session.mailbox ?? "") }
  }

  private func isReady() {
    if let topic = link.session.presence {
      attempt { client throws(BrokerError) in _ = try client.publish(Array("online".utf8), to: topic, retained: true) }
    }
    isUp = true
    link.put(.up)
  }

  func received(_ payload: UnsafeRawBufferPointer, isRetained: Bool) {
    // Several messages may come in one read; those after one that was not taken must not be, either.
    guard failure == nil, !isRetained else { return }
    guard payload.count <= Mailbox.maximumMessageBytes else { return link.put(.oversize(payload.count)) }
    link.put(.message(Array(payload)))
    if !link.isLastMessageTaken() { failure = link.isClosed ? .closed : .notTaken }
  }

  func wasAcknowledged(_ number: Int32, isAccepted: Bool) {
    if let post = underWay.removeValue(forKey: number) { link.put(.published(post, isAccepted: isAccepted)) }
  }

  /// - Parameter reason: the broker's from 0x80 on, libmosquitto's own below.
  func hasDisconnected(_ reason: Int32) {
    if failure == nil, reason >= 0x80 { failure = BrokerError(disconnectReason: reason) }
  }

  private func attempt(_ call: (Client) throws(BrokerError) -> Void) {
    guard let client else { return }
    do throws(BrokerError) { try call(client) } catch { failure = error }
  }
}
