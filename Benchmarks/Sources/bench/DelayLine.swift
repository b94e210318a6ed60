// SPDX-License-Identifier: Apache-2.0
import CBench
import Foundation
import Glibc
import Synchronization

/// A line with a long way: an HTTP proxy (CONNECT) that delivers all bytes in both directions later. Its connections
/// have their own threads, until the process ends.
final class DelayLine: Sendable {
  /// Seconds, of one direction.
  let delay: Double
  /// `http://host:port`, for the variable `https_proxy`.
  let url: String
  private let descriptor: Int32
  private let opened = Mutex(0)

  init(delay: Double) {
    self.delay = delay
    let (descriptor, port) = Loopback.listening()
    self.descriptor = descriptor
    _ = bench_set_blocking(descriptor)
    url = "http://\(Loopback.address):\(port)"
    signal(SIGPIPE, SIG_IGN)
    Thread.detachNewThread { [self] in
      while true {
        let caller = accept(descriptor, nil, nil)
        if caller >= 0 { Thread.detachNewThread { [self] in connect(caller) } }
      }
    }
  }

  /// The number of connections so far.
  var connections: Int { opened.withLock { $0 } }

  private func connect(_ caller: Int32) {
    guard let target = Self.target(of: caller) else {
      close(caller)
      return
    }
    opened.withLock { $0 += 1 }
    let server = Loopback.connecting(to: target)
    _ = bench_set_blocking(server)
    _ = bench_set_blocking(caller)
    var yes: Int32 = 1
    setsockopt(caller, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
    // The proxy's confirmation takes as long as the TCP handshake with a server at the end of the line.
    pause(seconds: 2 * delay)
    let confirmation = Array("HTTP/1.1 200 OK\r\n\r\n".utf8)
    guard send(caller, confirmation, confirmation.count, Int32(MSG_NOSIGNAL)) == confirmation.count else { return }
    Direction(from: caller, to: server, after: delay).start()
    Direction(from: server, to: caller, after: delay).start()
  }

  /// The port that the CONNECT request names.
  private static func target(of caller: Int32) -> UInt16? {
    var head: [UInt8] = []
    var byte: UInt8 = 0
    while !head.ends(with: "\r\n\r\n"), head.count < 4096 {
      guard read(caller, &byte, 1) == 1 else { return nil }
      head.append(byte)
    }
    let words = String(decoding: head, as: UTF8.self).split(separator: " ")
    guard words.count > 1, words[0] == "CONNECT" else { return nil }
    return words[1].split(separator: ":").last.flatMap { UInt16($0) }
  }
}

extension [UInt8] {
  fileprivate func ends(with text: String) -> Bool { suffix(text.utf8.count).elementsEqual(text.utf8) }
}

/// One direction of a connection: a thread that reads, and one that writes what was read, `delay` seconds later.
private final class Direction: Sendable {
  private let source: Int32
  private let target: Int32
  private let delay: Double
  private let pieces = Mutex<[(due: Instant, bytes: [UInt8])]>([])
  private let available = DispatchSemaphore(value: 0)

  init(from source: Int32, to target: Int32, after delay: Double) {
    (self.source, self.target, self.delay) = (source, target, delay)
  }

  func start() {
    Thread.detachNewThread { [self] in readAll() }
    Thread.detachNewThread { [self] in writeAll() }
  }

  /// An empty piece is the end.
  private func readAll() {
    var chunk = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = read(source, &chunk, chunk.count)
      pieces.withLock { $0.append((.now + delay, Array(chunk.prefix(max(0, count))))) }
      available.signal()
      if count <= 0 { return }
    }
  }

  private func writeAll() {
    while true {
      available.wait()
      let (due, bytes) = pieces.withLock { $0.removeFirst() }
      let early = due - .now
      if early > 0 { pause(seconds: early) }
      guard !bytes.isEmpty, send(target, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
        shutdown(target, Int32(SHUT_WR))
        shutdown(source, Int32(SHUT_RD))
        return
      }
    }
  }
}
