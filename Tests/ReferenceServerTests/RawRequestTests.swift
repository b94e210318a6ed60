// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import Glibc
import ServerTestSupport
import Testing

/// What no HTTP client sends, against the running server.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RawRequestTests {
  let server: TokenServerProcess
  /// For health checks: there is no TLS.
  let address: String

  init() throws {
    server = try TokenServerProcess(configuration: "[operations]\nport = 0\n", servers: 1)
    address = try OperationsTests.address(of: server)
  }

  /// A connection on which the test waits for data for 30 s at most, and of which the kernel keeps little.
  private func open() throws -> Int32 {
    let socket = try connect(to: Int(address.split(separator: ":").last ?? "") ?? 0, from: "127.0.0.1")
    var limit = timeval(tv_sec: 30, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var size: Int32 = 64 << 10
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    return socket
  }

  /// - Returns: what the server sends, and whether it ends that.
  private func received(from socket: Int32) -> (text: String, isEnded: Bool) {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = recv(socket, &buffer, buffer.count, 0)
      guard count > 0 else { return (String(decoding: bytes, as: UTF8.self), count == 0 || errno == ECONNRESET) }
      bytes += buffer[..<count]
    }
  }

  @Test(
    "A request for another protocol is the last one, and what follows is not read",
    arguments: [
      "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
      "GET /healthz HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
      "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
    ])
  func otherProtocol(head: String) throws {
    let socket = try open()
    defer { close(socket) }
    _ = send(socket, Array(head.utf8), head.utf8.count, Int32(MSG_NOSIGNAL))
    let response = received(from: socket)
    #expect(response.isEnded && response.text.lowercased().contains("connection: close"), "\(response)")
    let block = [UInt8](repeating: UInt8(ascii: "x"), count: 64 << 10)
    var sent = 0
    while sent < 8 << 20 {
      var wanted = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
      // The kernel takes no more while the server does not read.
      guard poll(&wanted, 1, 2000) > 0 else { break }
      let count = send(socket, block, block.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
      guard count > 0 else { break }
      sent += count
    }
    #expect(sent < 8 << 20)
  }

  @Test("A client that asks for HTTP/2 gets each response") func otherVersion() throws {
    let output = try run(
      "/usr/bin/curl",
      [
        "--silent", "--show-error", "--max-time", "60", "--header", "Connection: Upgrade, HTTP2-Settings",
        "--header", "Upgrade: h2c", "--header", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA", address + "/healthz",
        address + "/healthz",
      ])
    #expect(output.status == 0 && output.text == "ok\nok\n", "\(output.text) \(output.errors)")
  }

  @Test("1,000 requests at once on one connection end it") func manyRequests() throws {
    let socket = try open()
    defer { close(socket) }
    let text = String(repeating: "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", count: 1000)
    _ = send(socket, Array(text.utf8), text.utf8.count, Int32(MSG_NOSIGNAL))
    let response = received(from: socket)
    #expect(response.isEnded)
    #expect(response.text.components(separatedBy: "200 OK").count <= 9)
    try server.curl(address + "/healthz").expect(200)
  }
}
