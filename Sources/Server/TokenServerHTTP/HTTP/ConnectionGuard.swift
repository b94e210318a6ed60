// SPDX-License-Identifier: Apache-2.0
import Glibc
import NIOCore
import NIOHTTPTypes
import TokenServerCore

/// Enforces the limits of one connection. One deadline runs from accept, including the TLS handshake, to the end of the
/// response. Each later request has the same deadline; between requests the connection may be idle for a limited time,
/// which is longer for a device: the user waits for its next request, and a new connection costs two round trips more.
/// An authenticated event stream has no deadline, ends when the client closes, and does not count for its source
/// address if its device has a user.
final class ConnectionGuard: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  /// Outbound events of a request.
  enum Event: Sendable {
    /// Its client is authenticated as a device and gets an event stream or a long poll.
    /// - Parameter isCounted: whether the connection counts for its source. If it does and the source is at its limit,
    ///   the event fails with `SourceLimitError`.
    case beginsStream(isCounted: Bool)
    /// Its client is authenticated as this device. The connection is kept for it from now on, except after a stream.
    case keep(for: String)
    /// What to do if the client disconnects before the response ends. Replaces a former one.
    case atClose(@Sendable () -> Void)
  }

  /// The source of the connection has as many as it may.
  struct SourceLimitError: Error {}

  private enum Counted { case no, forSource, inAllAlone }

  private let table: ConnectionTable
  private let sources: ProxiedSources
  private let requestTime: TimeAmount
  private let idleTime: TimeAmount
  private let deviceIdleTime: TimeAmount
  private let acknowledgeTime: TimeAmount
  private var source = ""
  private var counted = Counted.no
  private var isStreaming = false
  /// Clients may send requests before they have the response to an earlier one.
  private var openRequests = 0
  private var device: String?
  /// The connection's number in the table while it is kept for the device.
  private var kept: UInt64?
  /// Whether it has lost its place while it was kept, and is closed.
  private var isEvicted = false
  /// Whether the client has closed its sending side.
  private var isInputClosed = false
  private var atClose: (@Sendable () -> Void)?
  /// When the connection is closed; nil for an event stream.
  private var deadline: NIODeadline?
  /// Fires at the deadline or earlier. Each request moves the deadline twice, mostly to a later time: the timer is set
  /// again only when it fires.
  private var timer: (scheduled: Scheduled<Void>, time: NIODeadline)?

  /// - Parameter acknowledgeTime: the time limit for the peer's TCP acknowledgement of sent data. Each event stream
  ///   gets a heartbeat every 20 s, so that the stream of a vanished device ends within 50 s.
  init(
    table: ConnectionTable, sources: ProxiedSources = ProxiedSources(), limits: ServerConfiguration.Limits,
    acknowledgeTime: TimeAmount = .seconds(30)
  ) {
    self.sources = sources
    self.acknowledgeTime = acknowledgeTime
    self.table = table
    requestTime = .seconds(Int64(limits.requestSeconds))
    idleTime = .seconds(Int64(limits.idleSeconds))
    deviceIdleTime = .seconds(Int64(limits.deviceIdleSeconds))
  }

  func handlerAdded(context: ChannelHandlerContext) { if context.channel.isActive { begin(context) } }

  func channelActive(context: ChannelHandlerContext) {
    begin(context)
    context.fireChannelActive()
  }

  private func begin(_ context: ChannelHandlerContext) {
    guard counted == .no else { return }
    source = sources.name(of: context.channel)
    guard table.enter(from: source) else {
      context.close(promise: nil)
      return
    }
    counted = .forSource
    // Without support for this option, the timers of TCP apply.
    _ = context.channel.setOption(
      ChannelOptions.tcpOption(.init(rawValue: TCP_USER_TIMEOUT)),
      value: ChannelOptions.Types.SocketOption.Value(acknowledgeTime.nanoseconds / 1_000_000))
    expectEnd(within: requestTime, context)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isEvicted else { return }
    if case .head = unwrapInboundIn(data) {
      openRequests += 1
      guard resume() else { return context.close(promise: nil) }
      if !isStreaming { expectEnd(within: requestTime, context) }
    }
    context.fireChannelRead(data)
  }

  /// - Returns: false if the connection has lost its place: a request must not be handled whose response the client
  ///   cannot get.
  private func resume() -> Bool {
    guard let kept else { return true }
    self.kept = nil
    isEvicted = !table.resume(kept)
    // At the limit of its address the request is handled all the same: there is one such connection for each device.
    if !isEvicted, table.attribute(to: source) { counted = .forSource }
    return !isEvicted
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    context.write(data, promise: promise)
    if case .end = unwrapOutboundIn(data) { responseEnds(context) }
  }

  private func responseEnds(_ context: ChannelHandlerContext) {
    atClose = nil
    // Without a request, the connection may be kept already.
    guard openRequests > 0 else { return }
    openRequests -= 1
    let wasStreaming = isStreaming
    if isStreaming {
      isStreaming = false
      // A connection beyond the limit may still send its response, and is closed then.
      if counted != .forSource, table.attribute(to: source) { counted = .forSource }
    }
    guard openRequests == 0 else { return expectEnd(within: requestTime, context) }
    guard let device, !wasStreaming else {
      return expectEnd(within: counted == .forSource ? idleTime : .seconds(1), context)
    }
    if counted == .forSource { table.release(from: source) }
    counted = .inAllAlone
    kept = table.keep(for: device) { [channel = context.channel] in channel.close(mode: .all, promise: nil) }
    expectEnd(within: deviceIdleTime, context)
  }

  func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
    switch event {
    case Event.atClose(let action):
      // The client can have disconnected meanwhile.
      if context.channel.isActive { atClose = action } else { action() }
      promise?.succeed()
    case Event.beginsStream(let isCounted):
      beginStream(isCounted: isCounted, promise)
      if isInputClosed { context.close(promise: nil) }
    case Event.keep(let device):
      self.device = device
      promise?.succeed()
    default: context.triggerUserOutboundEvent(event, promise: promise)
    }
  }

  private func beginStream(isCounted: Bool, _ promise: EventLoopPromise<Void>?) {
    switch (counted, isCounted) {
    case (.forSource, false):
      table.release(from: source)
      counted = .inAllAlone
    case (.inAllAlone, true):
      // A connection that was kept for its device.
      guard table.attribute(to: source) else {
        promise?.fail(SourceLimitError())
        return
      }
      counted = .forSource
    default: break
    }
    isStreaming = true
    deadline = nil
    cancelTimer()
    promise?.succeed()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    // A client that has closed its sending side is treated as disconnected.
    if case ChannelEvent.inputClosed = event {
      isInputClosed = true
      if isStreaming { context.close(promise: nil) }
    }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if isStreaming { context.close(promise: nil) }
    context.fireErrorCaught(error)
  }

  func channelInactive(context: ChannelHandlerContext) {
    end()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) { end() }

  private func end() {
    cancelTimer()
    atClose?()
    atClose = nil
    if let kept { isEvicted = !table.resume(kept) }
    kept = nil
    if counted == .forSource { table.release(from: source) }
    if counted != .no { table.leave(wasEvicted: isEvicted) }
    counted = .no
  }

  private func expectEnd(within time: TimeAmount, _ context: ChannelHandlerContext) {
    let channel = context.channel
    let latest = channel.eventLoop.now + time
    deadline = latest
    if let timer, timer.time <= latest { return }
    setTimer(at: latest, of: channel)
  }

  private func setTimer(at time: NIODeadline, of channel: any Channel) {
    cancelTimer()
    let scheduled = channel.eventLoop.assumeIsolated().scheduleTask(deadline: time) { [self] in timerFires(channel) }
    timer = (scheduled, time)
  }

  private func timerFires(_ channel: any Channel) {
    timer = nil
    guard let deadline else { return }
    if deadline > channel.eventLoop.now {
      setTimer(at: deadline, of: channel)
    } else {
      channel.close(mode: .all, promise: nil)
    }
  }

  private func cancelTimer() {
    timer?.scheduled.cancel()
    timer = nil
  }
}

@available(*, unavailable)
extension ConnectionGuard: Sendable {}
