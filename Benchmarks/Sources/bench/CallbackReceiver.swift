// SPDX-License-Identifier: Apache-2.0
import CBench
import Glibc

/// The portal's callback endpoint: confirms each callback immediately.
final class CallbackReceiver: Pollable {
  private let loop: Loop
  private let descriptor: Int32
  let url: String
  private(set) var received = 0

  init(on loop: Loop) {
    self.loop = loop
    let (descriptor, port) = Loopback.listening()
    self.descriptor = descriptor
    url = "http://\(Loopback.address):\(port)/finished"
    loop.watch(descriptor, for: readable, by: self)
  }

  func ready(_ events: UInt32) {
    let caller = accept(descriptor, nil, nil)
    guard caller >= 0 else { return }
    _ = bench_set_nonblocking(caller)
    loop.watch(caller, for: readable, by: Caller(caller, self))
  }

  private final class Caller: Pollable {
    private let descriptor: Int32
    private let receiver: CallbackReceiver
    private var parser = MessageParser()

    init(_ descriptor: Int32, _ receiver: CallbackReceiver) {
      self.descriptor = descriptor
      self.receiver = receiver
    }

    deinit { close(descriptor) }

    func ready(_ events: UInt32) {
      var chunk = [UInt8](repeating: 0, count: 4096)
      let count = recv(descriptor, &chunk, chunk.count, 0)
      if count < 0, errno == EAGAIN { return }
      guard count > 0 else { return receiver.loop.forget(descriptor) }
      parser.append(chunk[..<count])
      while let piece = try? parser.next() {
        guard case .end = piece else { continue }
        receiver.received += 1
        let thanks = Array("HTTP/1.1 204 No Content\r\n\r\n".utf8)
        send(descriptor, thanks, thanks.count, Int32(MSG_NOSIGNAL))
      }
    }
  }
}
