// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import Glibc
import ReferenceProtocol
import ServerTestSupport
import Testing

/// Many idle connections, against the running server.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ConnectionTests {
  @Test("2,000 idle and 200 slow connections from one address do not delay a portal's request from another")
  func idleAndSlow() throws {
    try raiseDescriptorLimit(to: 4096)
    let ready = try ReadyServer()
    let (server, device, portal) = (ready.server, ready.device, ready.portal)
    /// The median of eleven requests: one may be late because the machine is busy.
    func median() throws -> Duration {
      let times = try (0..<11).map { _ in
        let began = ContinuousClock.now
        try server.curl(
          "--user", "\(portal.id):\(portal.secret)",
          "--data", "type=login&user_id=alice&device_id=\(device.clientID)&callback_uri=https://portal.example/",
          server.url + "/oauth/api/v4/authenticate/user"
        ).expect(200)
        return ContinuousClock.now - began
      }
      return times.sorted()[5]
    }
    let alone = try median()
    var sockets: [Int32] = []
    defer { sockets.forEach { close($0) } }
    for number in 0..<2200 {
      let socket = try connect(to: server.port, from: "127.0.0.2")
      sockets.append(socket)
      // The beginning of an incomplete TLS record.
      if number >= 2000 { _ = send(socket, [0x16, 0x03, 0x01] as [UInt8], 3, Int32(MSG_NOSIGNAL)) }
    }
    // With the connections in the way, a request would wait for 30 s.
    let isFast = try (1...3).contains { _ in try median() < alone + .seconds(20) }
    #expect(isFast)
  }

  private static let brief = "[limits]\nrequest_seconds = 1\nidle_seconds = 2\nconnections_per_source = 4\n"

  @Test("A connection is closed when its request is not complete in time", arguments: [0, 5])
  func deadline(bytes: Int) throws {
    let server = try TokenServerProcess(configuration: Self.brief)
    let socket = try connect(to: server.port, from: "127.0.0.1")
    defer { close(socket) }
    // Never a complete record, but always another byte.
    let hello: [UInt8] = [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00]
    let began = ContinuousClock.now
    var isOpen = true
    var sent = 0
    while isOpen, ContinuousClock.now - began < .seconds(60) {
      if sent < bytes {
        _ = send(socket, [hello[sent]], 1, Int32(MSG_NOSIGNAL))
        sent += 1
      }
      var byte: UInt8 = 0
      let count = recv(socket, &byte, 1, Int32(MSG_DONTWAIT))
      isOpen = count > 0 || (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      usleep(100_000)
    }
    #expect(!isOpen, "the server must close the connection within 60 s")
  }

  @Test("The number of connections per source is limited; an event stream does not count")
  func connectionsOfOneSource() throws {
    let ready = try ReadyServer(configuration: "[limits]\nconnections_per_source = 4\n")
    let (server, device) = (ready.server, ready.device)
    let stream = try device.openEventStream()
    var sockets: [Int32] = []
    defer { sockets.forEach { close($0) } }
    var isRefused = false
    for _ in 0..<50 where !isRefused {
      // If the request below was counted before one of these, the server closed that one.
      sockets = sockets.filter { socket in
        var byte: UInt8 = 0
        let isOpen = recv(socket, &byte, 1, Int32(MSG_DONTWAIT)) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)
        if !isOpen { close(socket) }
        return isOpen
      }
      while sockets.count < 4 { sockets.append(try connect(to: server.port, from: "127.0.0.1")) }
      usleep(50_000)
      isRefused = (try? server.curl("--max-time", "5", server.url + ServerMetadata.path)) == nil
    }
    #expect(isRefused)
    close(sockets.removeFirst())
    var isServed = false
    for _ in 0..<50 where !isServed {
      isServed = (try? server.curl(server.url + ServerMetadata.path))?.status == 200
      if !isServed { usleep(100_000) }
    }
    #expect(isServed)
    stream.send(SIGKILL)
  }

  @Test("The request deadline does not end an event stream or a long poll")
  func streamsHaveNoDeadline() throws {
    // On a busy machine a request may take longer than the deadline; one of several must not.
    func retried<Result>(_ body: () throws -> Result) throws -> Result {
      for _ in 1...4 { if let result = try? body() { return result } }
      return try body()
    }
    let type = "[[type]]\nname = \"login\"\nmethod = \"push\"\n"
    let brief = Self.brief.replacing("request_seconds = 1", with: "request_seconds = 4")
    let ready = try retried { try ReadyServer(configuration: brief + type) }
    let (server, device) = (ready.server, ready.device)
    let cursor = try #require(try retried { try device.events(after: nil)?.cursor })
    #expect(try retried { try device.events(after: cursor, wait: 6) } == nil)
    let stream = try retried { try device.openEventStream() }
    usleep(6_000_000)
    try server.admin("device", "delete", device.clientID)
    var lines: [String] = []
    while lines.count < 50, let line = stream.nextLine() { lines.append(line) }
    #expect(lines.contains("event: device-revoked"), "\(lines)")
  }

  @Test("A device that disconnects is detected soon, even without a write to it")
  func goneDevices() throws {
    let ready = try ReadyServer(
      configuration: """
        [limits]
        open_requests_per_device = 1000
        [[type]]
        name = "login"
        method = "push"
        request_expires_in = 600
        delivery_required = true
        """)
    let (server, device, portal) = (ready.server, ready.device, ready.portal)
    func ask() throws -> String {
      let reply = try server.curl(
        "--user", "\(portal.id):\(portal.secret)",
        "--data",
        "type=login&user_id=alice&device_id=\(device.clientID)&message=m&callback_uri=https://portal.example/",
        server.url + "/oauth/api/v4/authenticate/user")
      let transaction = try reply.expect(200).json["transaction_id"] as? String ?? ""
      let result = try server.curl(
        "--user", "\(portal.id):\(portal.secret)",
        server.url + "/oauth/api/v4/authenticate/transaction/\(transaction)")
      let reason = result.json["not_authenticated_reason"] as? [String: any Sendable]
      return reason?["reason"] as? String ?? "open"
    }
    // Asking writes to the stream, so that only the first time after the end counts. A busy machine may need longer.
    var isDetected = false
    for _ in 1...5 where !isDetected {
      let stream = try device.openEventStream()
      #expect(try ask() == "open")
      stream.send(SIGKILL)
      stream.waitForEnd()
      usleep(500_000)
      isDetected = try ask() == "failed_to_send"
    }
    #expect(isDetected)
    // The same with a long poll that its client gives up.
    var isGone = false
    for _ in 1...3 where !isGone {
      let cursor = try #require(try device.events(after: nil)?.cursor)
      let poll = try device.arguments(
        "GET", "/device/v1/events?after=\(cursor)", headers: ["Accept: application/json", "Prefer: wait=50"])
      #expect(throws: (any Error).self) { try server.curl(["--max-time", "3"] + poll) }
      for _ in 0..<50 where !isGone {
        isGone = try ask() == "failed_to_send"
        if !isGone { usleep(200_000) }
      }
    }
    #expect(isGone)
  }
}
