// SPDX-License-Identifier: Apache-2.0
import Glibc

/// CTAPHID (CTAP 2.1 §11.2) on a socket: reports of 64 bytes, those to the key after a byte with the number 0.
struct HIDChannel {
  struct Message {
    let command: UInt8
    let payload: [UInt8]
  }

  static let initialize: UInt8 = 0x06
  static let cbor: UInt8 = 0x10
  static let cancel: UInt8 = 0x11
  static let keepAlive: UInt8 = 0x3B

  let descriptor: Int32
  private(set) var isClosed = false
  private var channel: [UInt8] = [255, 255, 255, 255]

  init(descriptor: Int32) { self.descriptor = descriptor }

  /// - Parameter milliseconds: how long to wait for its first report; -1 for any time.
  /// - Returns: nil if there is none, or the other side has closed.
  mutating func receive(within milliseconds: Int32 = -1) -> Message? {
    guard let first = report(within: milliseconds), first.count == 64, first[4] & 0x80 != 0 else { return nil }
    channel = Array(first[..<4])
    let size = Int(first[5]) << 8 | Int(first[6])
    var payload = Array(first[7...])
    while payload.count < size {
      guard let next = report(within: 30_000), next.count == 64 else { return nil }
      payload += next[5...]
    }
    return Message(command: first[4] & 0x7F, payload: Array(payload.prefix(size)))
  }

  func send(_ command: UInt8, _ payload: some Collection<UInt8>) {
    var rest = Array(payload)[...]
    var head = [command | 0x80, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
    var sequence: UInt8 = 0
    repeat {
      var report = channel + head
      let part = rest.prefix(64 - report.count)
      report += part
      rest = rest.dropFirst(part.count)
      report += [UInt8](repeating: 0, count: 64 - report.count)
      _ = Glibc.send(descriptor, report, report.count, Int32(MSG_NOSIGNAL))
      head = [sequence]
      sequence += 1
    } while !rest.isEmpty
  }

  private mutating func report(within milliseconds: Int32) -> [UInt8]? {
    var watched = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&watched, 1, milliseconds) == 1 else { return nil }
    var buffer = [UInt8](repeating: 0, count: 65)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    guard count > 0 else {
      isClosed = true
      return nil
    }
    return Array(buffer[1..<max(1, count)])
  }
}
