// SPDX-License-Identifier: Apache-2.0
import CBench
import Foundation
import Glibc

/// An approval token with accounts at a simulated server whose certificate it trusts.
final class PushToken {
  let state: String
  private let stage: Stage
  private let authority: String
  private var child: Child?

  init(on stage: Stage, authority: String, named name: String) {
    (self.stage, self.authority) = (stage, authority)
    state = "\(stage.directory)/\(name)"
  }

  func enroll(_ url: String) throws {
    _ = try stage.run("approval-token", enrollment(url))
  }

  /// The arguments of the command. The URI is in a file, because its secret outlives the enrollment.
  private func enrollment(_ url: String) throws -> [String] {
    let file = "\(stage.directory)/enrollment-uri"
    try url.write(toFile: file, atomically: true, encoding: .utf8)
    return ["enroll", "--file", file, "--state", state, "--authorities", authority]
  }

  /// - Parameter settings: lines of the table `[push]`, and additional tables.
  func start(_ settings: String = "") throws -> (readings: ProcessReadings, control: ControlSocket) {
    let started = try launch(settings, [:])
    _ = try started.control.followLED().waitForLED("idle, connected")
    return started
  }

  /// Starts, and enrolls then, with a PIN that is typed.
  /// - Parameter environment: variables of the service.
  func start(
    _ settings: String, enrolling url: String, choosing pin: String, environment: [String: String]
  ) throws -> (readings: ProcessReadings, control: ControlSocket) {
    let started = try launch(settings, environment)
    let led = try started.control.followLED()
    let enrollment = try stage.start("approval-token", self.enrollment(url))
    try started.control.choose(pin, asBy: led)
    _ = try enrollment.readLine()
    _ = try led.waitForLED("idle, connected")
    return started
  }

  private func launch(
    _ settings: String, _ environment: [String: String]
  ) throws -> (readings: ProcessReadings, control: ControlSocket) {
    let file = "\(stage.directory)/push.toml"
    try "[tls]\nauthorities = \"\(authority)\"\n[push]\n\(settings)\n".write(
      toFile: file, atomically: false, encoding: .utf8)
    let child = try stage.start(
      "approval-tokend", ["serve", "--state", state, "--config", file], environment: environment)
    self.child = child
    guard try child.readLine() == "ready" else { throw BenchError("approval-tokend is not ready") }
    return (ProcessReadings(processID: child.processID), ControlSocket(path: state + "/control.sock"))
  }

  func end() {
    child?.end()
    child = nil
  }
}

/// privacyIDEA's HTTP gateway, the client of the token's push listener.
final class PushGateway {
  let port: UInt16
  /// The listener accepts one request in three seconds after its burst.
  private static let pace = 3.05
  private var earliest = Instant.now

  /// Finds a free port.
  init() {
    let (descriptor, port) = Loopback.listening()
    close(descriptor)
    self.port = port
  }

  /// Waits until a request may be sent, runs the preparation, and sends one.
  /// - Returns: when the request was begun.
  func post(after preparation: () throws -> Void = {}) throws -> Instant {
    pause(seconds: max(0, earliest - .now))
    try preparation()
    let began = Instant.now
    earliest = began + Self.pace
    let descriptor = Loopback.connecting(to: port)
    defer { close(descriptor) }
    _ = bench_set_blocking(descriptor)
    var connected = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    poll(&connected, 1, 1000)
    let request = Array("POST /push HTTP/1.1\r\nHost: \(Loopback.address)\r\nContent-Length: 2\r\n\r\n{}".utf8)
    send(descriptor, request, request.count, Int32(MSG_NOSIGNAL))
    var answer = [UInt8](repeating: 0, count: 64)
    let count = recv(descriptor, &answer, answer.count, 0)
    let line = String(decoding: answer.prefix(max(0, count)), as: UTF8.self)
    guard line.hasPrefix("HTTP/1.1 200 ") else { throw BenchError("the push listener said \(line)") }
    return began
  }
}
