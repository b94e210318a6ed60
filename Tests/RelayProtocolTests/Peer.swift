// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import Synchronization
import UnixSockets

@testable import RelayProtocol

/// A network process that sends the same messages after every order.
final class Peer: Sendable {
  private let messages: [[UInt8]]
  private let closes: Bool
  private let patience: Duration
  private let state = Mutex((orders: [[UInt8]](), receipts: [[UInt8]](), hangUps: 0))

  /// - Parameters:
  ///   - closes: whether it ends the connection after the messages, or waits.
  ///   - patience: how long the device process waits for the first message; long, as the machine may be busy.
  init(_ messages: [[UInt8]], closes: Bool = false, patience: Duration = .seconds(30)) {
    self.messages = messages
    self.closes = closes
    self.patience = patience
  }

  convenience init(_ replies: [RelayReply], closes: Bool = false, patience: Duration = .seconds(30)) {
    self.init(replies.map(\.bytes), closes: closes, patience: patience)
  }

  var orders: [RelayOrder] { state.withLock { $0.orders }.compactMap { try? RelayOrder($0) } }
  var receipts: [RelayReceipt] { state.withLock { $0.receipts }.compactMap { try? RelayReceipt($0) } }
  /// How many connections the device process has ended.
  var hangUps: Int { state.withLock { $0.hangUps } }

  var relay: Relay {
    Relay(patience: patience) { [self] () throws(RelayError) in
      let (device, network) = try socketPair()
      Task { await serve(network) }
      return device
    }
  }

  private func serve(_ socket: RelaySocket) async {
    guard let order = try? await socket.receive(atMost: RelayOrder.longest) else { return }
    state.withLock { $0.orders.append(order) }
    // A reader of its own: the device process may read only after its receipts were taken.
    let receiving = Task {
      while let receipt = try? await socket.receive(atMost: RelayOrder.longest) {
        state.withLock { $0.receipts.append(receipt) }
      }
      state.withLock { $0.hangUps += 1 }
    }
    for message in messages where (try? await socket.send(message)) == nil { break }
    if closes { socket.end() }
    await receiving.value
  }
}

func socketPair() throws(RelayError) -> (RelaySocket, RelaySocket) {
  var ends: [Int32] = [-1, -1]
  guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
    throw .call("socketpair", errno: errno)
  }
  return (RelaySocket(UnixSocket(descriptor: ends[0])), RelaySocket(UnixSocket(descriptor: ends[1])))
}
