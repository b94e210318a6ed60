// SPDX-License-Identifier: Apache-2.0
import NIOCore
import Synchronization
import TokenServerCore

/// Connections to portals that wait for the next callback, for at most 10 s each.
final class CallbackPool: Sendable {
  struct Connection: Sendable {
    let channel: any Channel
    let openedAt: NIODeadline

    func close() { channel.close(promise: nil) }
  }

  /// What callbacks on one connection have in common. The certificate was verified for the authority; the address was
  /// checked.
  struct Key: Hashable, Sendable {
    let isSecure: Bool
    let authority: String
    let address: SocketAddress
    let eventLoop: ObjectIdentifier

    init(_ url: CallbackURL, at address: SocketAddress, on eventLoop: any EventLoop) {
      isSecure = url.isSecure
      authority = url.authority
      self.address = address
      self.eventLoop = ObjectIdentifier(eventLoop)
    }
  }

  private struct Waiting {
    let key: Key
    let connection: Connection
    let end: NIODeadline
  }

  private struct State {
    /// The last one has waited for the shortest time.
    var waiting: [Waiting] = []
    /// Whether a timer closes those that have waited too long.
    var isTimed = false
  }

  private static let longestWait = TimeAmount.seconds(10)
  /// The maximum age of a connection that is used again.
  private static let lifetime = TimeAmount.seconds(60)
  /// The maximum number of connections that wait.
  private static let limit = 128

  private let state = Mutex(State())

  /// Takes a connection that is open and was not used again for too long.
  func take(_ key: Key, at now: NIODeadline) -> Connection? {
    state.withLock { state in
      state.waiting.lastIndex { $0.key == key && $0.end > now && $0.connection.channel.isActive }
        .map { state.waiting.remove(at: $0).connection }
    }
  }

  /// Lets a connection wait, or closes it if it is too old. If too many wait, closes the one that has waited longest.
  func put(_ connection: Connection, for key: Key) {
    let eventLoop = connection.channel.eventLoop
    let end = min(eventLoop.now + Self.longestWait, connection.openedAt + Self.lifetime)
    guard end > eventLoop.now else { return connection.close() }
    let (oldest, mustTime) = state.withLock { state in
      state.waiting.append(Waiting(key: key, connection: connection, end: end))
      defer { state.isTimed = true }
      return (state.waiting.count > Self.limit ? state.waiting.removeFirst() : nil, !state.isTimed)
    }
    oldest?.connection.close()
    if mustTime { setTimer(at: end, on: eventLoop) }
  }

  private func setTimer(at time: NIODeadline, on eventLoop: any EventLoop) {
    eventLoop.scheduleTask(deadline: time) { [self] in closeOld(eventLoop) }
  }

  private func closeOld(_ eventLoop: any EventLoop) {
    let now = eventLoop.now
    let (old, next) = state.withLock { state in
      let old = state.waiting.filter { $0.end <= now }
      state.waiting.removeAll { $0.end <= now }
      let next = state.waiting.map(\.end).min()
      state.isTimed = next != nil
      return (old, next)
    }
    for waiting in old { waiting.connection.close() }
    if let next { setTimer(at: next, on: eventLoop) }
  }
}
