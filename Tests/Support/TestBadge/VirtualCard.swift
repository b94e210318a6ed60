// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import Synchronization
import Threads

/// A card in a slot of a virtual reader (vpcd). It is inserted as long as it is connected.
package final class VirtualCard: Sendable {
  /// The reader, as a card sees it while it answers a command.
  package struct Reader {
    fileprivate let descriptor: Int32
    fileprivate let looks: Looks

    /// Answers the command, and waits for the next one.
    /// - Returns: nil once the card is removed.
    package func exchange(_ answer: [UInt8]) -> [UInt8]? {
      send(answer)
      return nextCommand()
    }

    fileprivate func send(_ answer: [UInt8]) {
      let reply = [UInt8(answer.count >> 8), UInt8(answer.count & 255)] + answer
      _ = Glibc.send(descriptor, reply, reply.count, Int32(MSG_NOSIGNAL))
    }

    /// Frames have two bytes of length. A command of one byte switches the power; 4 asks for the answer to a reset.
    fileprivate func nextCommand() -> [UInt8]? {
      while let length = read(2), let command = read(Int(length[0]) << 8 | Int(length[1])) {
        guard command.count == 1 else { return command }
        guard command == [4] else { continue }
        looks.add()
        send([0x3B, 0x80, 0x80, 0x01, 0x01])
      }
      return nil
    }

    private func read(_ count: Int) -> [UInt8]? {
      var bytes: [UInt8] = []
      while bytes.count < count {
        // vpcd writes a frame in two segments: a delayed acknowledgment would cost 40 ms.
        var quick: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_QUICKACK, &quick, socklen_t(MemoryLayout<Int32>.size))
        var buffer = [UInt8](repeating: 0, count: count - bytes.count)
        let received = recv(descriptor, &buffer, buffer.count, 0)
        guard received > 0 else { return nil }
        bytes += buffer[..<received]
      }
      return bytes
    }
  }

  /// How often pcscd has asked a card for its answer to a reset.
  fileprivate final class Looks: Sendable {
    private let total = Mutex(0)
    var count: Int { total.withLock { $0 } }
    func add() { total.withLock { $0 += 1 } }
  }

  private struct State {
    /// -1 if the card is not inserted.
    var connection: Int32 = -1
    var looks = Looks()
  }

  private let state = Mutex(State())

  package init() {}

  package var isInserted: Bool { state.withLock { $0.connection >= 0 } }

  /// Must not be called while the card is inserted.
  /// - Parameters:
  ///   - slot: 0 or 1.
  ///   - perform: performs a command, in a thread of its own; returns nil for no answer.
  package func insert(
    into reader: TestPCSC, slot: UInt16, _ perform: @escaping @Sendable (_ command: [UInt8], Reader) -> [UInt8]?
  ) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = (reader.port + slot).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let isConnected = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    precondition(isConnected, "no virtual reader at port \(reader.port + slot)")
    let looks = Looks()
    state.withLock { ($0.connection, $0.looks) = (descriptor, looks) }
    let thread = detachThread { [self] in
      let reader = Reader(descriptor: descriptor, looks: looks)
      while let command = reader.nextCommand() {
        if let answer = perform(command, reader) { reader.send(answer) }
      }
      // The card may have been inserted again meanwhile.
      state.withLock { if $0.connection == descriptor { $0.connection = -1 } }
      close(descriptor)
    }
    precondition(thread, "no thread is left")
  }

  package func remove() {
    state.withLock { state in
      if state.connection >= 0 { shutdown(state.connection, Int32(SHUT_RDWR)) }
      state.connection = -1
    }
  }

  /// Waits until pcscd counts the inserted card, at most 60 s. Until then it asks for the answer to a reset at most
  /// three times, and later again each time that it looks at the slot.
  package func untilCounted() async throws {
    let looks = state.withLock { $0.looks }
    try await eventually("pcscd sees a card") { looks.count > 3 }
  }
}
