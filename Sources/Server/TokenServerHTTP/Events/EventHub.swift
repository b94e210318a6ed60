// SPDX-License-Identifier: Apache-2.0
import Cryptography
import NIOCore
package import ReferenceProtocol
import Synchronization
package import TokenServerCore

/// The connected devices and the latest events of each. Everything is in memory: events are hints, the pending list is
/// authoritative, and after a restart every earlier cursor is answered with `resync`.
package final class EventHub: Sendable {
  /// The number of unread frames at which a stream is closed.
  private static let unread = 32

  typealias Frames = AsyncStream<ByteBuffer>

  fileprivate struct Receiver {
    let number: UInt64
    let isStream: Bool
    let frames: Frames.Continuation
  }

  fileprivate struct Line {
    var history = EventHistory()
    var receiver: Receiver?
  }

  private struct State {
    var lines: [ClientID: Line] = [:]
    var receivers: UInt64 = 0
    var isClosed = false
  }

  /// The nonces of the server. A hint contains the current one, because a device sends a request then.
  let nonces: DPoPNonces
  /// Called when a device connects, and when it has no connection any more.
  private let connectionChanged: @Sendable (ClientID, Bool) -> Void
  private let state = Mutex(State())
  /// Distinguishes cursors of this process from cursors of an earlier one.
  private let epoch = Random.bytes(6).lowercaseHex

  package convenience init() { self.init(nonces: DPoPNonces()) { _, _ in } }

  /// - Parameter connectionChanged: called when a device connects, and when it has no connection any more; must return
  ///   at once, and not call the hub.
  package init(nonces: DPoPNonces, connectionChanged: @escaping @Sendable (ClientID, Bool) -> Void) {
    self.nonces = nonces
    self.connectionChanged = connectionChanged
  }

  /// Adds an event for a device that has connected since the start. Others get the pending list when they connect.
  package func publish(_ event: DeviceEvent, to clientID: ClientID) {
    var hint = event
    hint.dpopNonce = nonces.current()
    let data = JSON.encode(hint)
    state.withLock { state in
      guard var line = state.lines[clientID] else { return }
      line.history.note(event)
      state.lines[clientID] = line
      // Inside the lock, so that frames are sent in the order of their numbers.
      if let listener = line.receiver {
        send(EventFrame.encode(event.kind, data: data, id: line.history.cursor(in: epoch)), to: listener)
      }
    }
  }

  /// Opens the device's stream; ends its older stream.
  /// - Parameter cursor: the last event that the device has seen, if known.
  func listen(_ clientID: ClientID, isStream: Bool, after cursor: String?) -> Subscription {
    let (frames, continuation) = Frames.makeStream(bufferingPolicy: .bufferingOldest(Self.unread))
    let (missed, older, number) = state.withLock { state in
      state.receivers += 1
      let number = state.receivers
      var line = state.lines[clientID] ?? Line()
      let older = line.receiver
      line.receiver = state.isClosed ? nil : Receiver(number: number, isStream: isStream, frames: continuation)
      state.lines[clientID] = line
      if state.isClosed { continuation.finish() } else if older == nil { connectionChanged(clientID, true) }
      return (line.history.events(after: cursor, in: epoch), older, number)
    }
    older?.frames.finish()
    return Subscription(frames: frames, missed: missed) { [self] in
      continuation.finish()
      leave(clientID, number)
    }
  }

  struct Subscription: Sendable {
    let frames: Frames
    /// Events since the cursor.
    let missed: EventPage
    let cancel: @Sendable () -> Void
  }

  /// The events for a device that polls.
  func events(of clientID: ClientID, after cursor: String?) -> EventPage {
    state.withLock { state in
      let line = state.lines[clientID] ?? Line()
      state.lines[clientID] = line
      return line.history.events(after: cursor, in: epoch)
    }
  }

  /// Whether the device has connected since the start.
  package func knows(_ clientID: ClientID) -> Bool { state.withLock { $0.lines[clientID] != nil } }

  package func isListening(_ clientID: ClientID) -> Bool { state.withLock { $0.lines[clientID]?.receiver != nil } }

  /// The devices that are connected.
  package var connectedDevices: [ClientID] {
    state.withLock { state in state.lines.filter { $0.value.receiver != nil }.map(\.key) }
  }

  /// The number of devices with an event stream, and of those with a long poll.
  var connected: (streams: Int, polls: Int) {
    state.withLock { state in
      let receivers = state.lines.values.compactMap(\.receiver)
      let streams = receivers.count { $0.isStream }
      return (streams, receivers.count - streams)
    }
  }

  /// Sends a heartbeat to every stream, so that both sides detect a lost connection.
  package func sendHeartbeats() {
    let listeners = state.withLock { state in state.lines.values.compactMap { $0.receiver } }
    for listener in listeners where listener.isStream { send(EventFrame.heartbeat, to: listener) }
  }

  /// Ends the connections of devices one after the other, so that these do not all connect to other servers at the same
  /// moment. Begins at half of the time: until then a load balancer could pass them to this server again.
  /// - Returns: after the time, or when the task is canceled.
  package func drain(within time: Duration) async {
    let steps = max(1, Int(clamping: (time / 2).milliseconds / 100))
    do {
      try await Task.sleep(for: time / 2)
      var due = 0.0
      // A connection that is ended is open until its last bytes are sent.
      var ended: Set<UInt64> = []
      for left in stride(from: steps, to: 0, by: -1) {
        let open = state.withLock { $0.lines.values.compactMap { $0.receiver } }.filter { !ended.contains($0.number) }
        due += Double(open.count) / Double(left)
        for receiver in open.prefix(left == 1 ? .max : Int(due)) {
          receiver.frames.finish()
          ended.insert(receiver.number)
        }
        due -= due.rounded(.down)
        try await Task.sleep(for: time / 2 / steps)
      }
    } catch {}
  }

  /// Ends all streams and refuses new ones.
  package func close() {
    let listeners = state.withLock { state in
      state.isClosed = true
      return state.lines.values.compactMap { $0.receiver }
    }
    listeners.forEach { $0.frames.finish() }
  }

  /// Ends the stream of a removed device, after the frames already sent, and drops its events.
  package func remove(_ clientID: ClientID) {
    state.withLock { state in
      let receiver = state.lines.removeValue(forKey: clientID)?.receiver
      if receiver != nil { connectionChanged(clientID, false) }
      return receiver
    }?.frames.finish()
  }

  private func leave(_ clientID: ClientID, _ number: UInt64) {
    state.withLock { state in
      guard state.lines[clientID]?.receiver?.number == number else { return }
      state.lines[clientID]?.receiver = nil
      connectionChanged(clientID, false)
    }
  }

  private func send(_ frame: ByteBuffer, to listener: Receiver) {
    // A slow reader loses its stream; it reconnects with its cursor.
    if case .dropped = listener.frames.yield(frame) { listener.frames.finish() }
  }
}
