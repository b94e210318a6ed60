// SPDX-License-Identifier: Apache-2.0
import Glibc
import NetworkDaemon
import Testing

@Suite(.timeLimit(.minutes(5))) struct ServiceManagerTests {
  /// A socket of a service manager; returns the first message that `send` sends, or nil.
  private func received(at path: String, by send: () -> Void) throws -> String? {
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    var bytes = Array(path.utf8)
    if bytes.first == UInt8(ascii: "@") { bytes[0] = 0 }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let bound = withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(2 + bytes.count)) }
    }
    try #require(bound == 0)
    defer { unlink(path) }
    send()
    var message = [UInt8](repeating: 0, count: 100)
    // A datagram on this machine has arrived when `sendto` returns.
    let count = recv(descriptor, &message, message.count, 0)
    return count < 0 ? nil : String(decoding: message.prefix(count), as: UTF8.self)
  }

  @Test("A message arrives at a path and at an abstract address", arguments: ["/tmp/", "@"])
  func notifies(prefix: String) throws {
    let path = prefix + "approval-token-notify-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
    #expect(try received(at: path) { ServiceManager(path: path).notify("READY=1") } == "READY=1")
  }

  @Test("Without a socket, with a path that is too long, or without a listener, nothing happens")
  func withoutASocketWithAPathThatIsTooLongOrWithoutAListenerNothingHappens() throws {
    let path = "/tmp/approval-token-notify-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
    let others = [nil, "", "@", path + "-absent", String(repeating: "x", count: 200)]
    #expect(try received(at: path) { for other in others { ServiceManager(path: other).notify("READY=1") } } == nil)
  }

  @Test(
    "The interval is half of the service manager's time, for this process only",
    arguments: [
      ("120000000", nil, .seconds(60)), ("120000000", "\(getpid())", .seconds(60)), ("120000000", "1", nil),
      ("120000000", "", nil), (nil, nil, nil), ("", nil, nil), ("0", nil, nil), ("1", nil, nil), ("-5", nil, nil),
      ("2 s", nil, nil), ("2", nil, .milliseconds(100)), ("18446744073709551616", nil, nil),
      ("18446744073709551615", nil, .seconds(3600)),
    ] as [(String?, String?, Duration?)])
  func interval(microseconds: String?, process: String?, expected: Duration?) {
    let manager = ServiceManager(path: nil, watchdogMicroseconds: microseconds, watchdogProcess: process)
    #expect(manager.watchdogInterval == expected)
  }
}
