// SPDX-License-Identifier: Apache-2.0
import CLinux
import Glibc
import RelayProtocol
import Synchronization
import Threads
import UnixSockets

/// The network process's side of the relay: accepts connections and carries out the order of each.
final class RelayListener: Sendable {
  /// More than a token with many accounts needs: two for each server, and some.
  private static let maximumConnections = 256

  private let socket: UnixSocket
  private let orders: RelayOrders
  private let idleLimit: Duration?
  private let patience: Duration
  private let connections = Mutex(0)

  /// - Parameters:
  ///   - socket: listening.
  ///   - idleLimit: `run` returns when there has been no connection for this time, at most twice as long; nil: never.
  ///   - patience: how long the other process may take to send its order, and to take each of the first replies.
  init(_ socket: UnixSocket, orders: RelayOrders, idleLimit: Duration? = nil, patience: Duration = .seconds(5)) {
    self.socket = socket
    self.orders = orders
    self.idleLimit = idleLimit
    self.patience = patience
    approval_linux_never_wait(socket.descriptor)
  }

  /// Runs until the task is canceled, or the process has been idle for the limit.
  func run() async {
    await withDiscardingTaskGroup { group in
      while await hasCaller() {
        let caller = approval_linux_accept_now(socket.descriptor)
        guard caller >= 0 else {
          // Out of descriptors or memory, or the caller is gone: wait and retry.
          if errno != EAGAIN { try? await Task.sleep(for: .milliseconds(100)) }
          continue
        }
        let connection = RelaySocket(UnixSocket(descriptor: caller))
        guard connections.withLock({ take(from: &$0) }) else { continue }
        group.addTask { [self] in
          await serve(connection)
          connections.withLock { $0 -= 1 }
        }
      }
      group.cancelAll()
    }
  }

  /// Waits for a connection.
  /// - Returns: false if the task was canceled, or the process is idle.
  private func hasCaller() async -> Bool {
    var isIdle = false
    while true {
      let due = idleLimit.map { ContinuousClock.now + $0 }
      let outcome = await SocketPoller.shared.wait(for: socket.descriptor, .reading, until: due)
      guard outcome == .timedOut else { return outcome == .ready }
      let hadNone = isIdle
      isIdle = connections.withLock { $0 == 0 }
      if hadNone, isIdle { return false }
    }
  }

  /// - Returns: false if there are too many connections.
  private func take(from count: inout Int) -> Bool {
    guard count < Self.maximumConnections else { return false }
    count += 1
    return true
  }

  private func serve(_ socket: RelaySocket) async {
    do throws(RelayError) {
      guard let message = try await socket.receive(atMost: RelayOrder.longest, until: .now + patience) else {
        return
      }
      let order: RelayOrder
      do throws(RelayError) { order = try RelayOrder(message) } catch {
        return try await socket.send(RelayReply.refused("\(error)").bytes, until: .now + patience)
      }
      try await socket.send(RelayReply.accepted.bytes, until: .now + patience)
      await carryOut(order, on: socket)
    } catch {}
  }

  /// Carries the order out until it is done or the other process ends the connection.
  private func carryOut(_ order: RelayOrder, on socket: RelaySocket) async {
    let (receipts, receiving) = AsyncStream.makeStream(of: RelayReceipt.self, bufferingPolicy: .bufferingOldest(1))
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [orders] in try? await orders.carryOut(order, on: socket, receipts) }
      group.addTask {
        while let message = try? await socket.receive(atMost: RelayReceipt.size),
          let receipt = try? RelayReceipt(message), case .enqueued = receiving.yield(receipt)
        {}
        receiving.finish()
      }
      await group.next()
      group.cancelAll()
    }
  }
}
