// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import ProgramHarness
import ReferenceProtocol
import ServerTestSupport
import Synchronization
import Testing

/// Devices with event streams, and requests that they answer, until they are stopped. Nothing is repeated: each call
/// that fails is noted.
final class DrainLoad: Sendable {
  private struct State {
    var isStopping = false
    var ends: [ContinuousClock.Instant] = []
    var streams: [String: RunningProgram] = [:]
    var seen: Set<String> = []
    var failures: [String] = []
    var answers = 0
  }

  private let server: TokenServerProcess
  private let portal: (id: String, secret: String)
  private let state = Mutex(State())
  private let working = Observed(0)

  init(_ server: TokenServerProcess, _ portal: (id: String, secret: String)) {
    (self.server, self.portal) = (server, portal)
  }

  /// When streams ended, in this order.
  var ends: [ContinuousClock.Instant] { state.withLock(\.ends) }
  var answers: Int { state.withLock(\.answers) }
  var failures: [String] { state.withLock(\.failures) }
  /// The number of open streams.
  var streams: Int { state.withLock(\.streams.count) }
  /// The transactions of the hints that streams have delivered.
  var seen: Set<String> { state.withLock(\.seen) }

  /// Opens a stream, and another one whenever it ends.
  func follow(_ device: DeviceClient) {
    work(with: device) { [self] device in
      // As a token does, which also gets a nonce.
      _ = try device.pending()
      let stream = try device.openEventStream(for: 240)
      state.withLock { $0.streams[device.clientID] = stream }
      while let line = stream.nextLine() {
        if let transaction = line.split(separator: "\"").first(where: { $0.count == 36 }) {
          _ = state.withLock { $0.seen.insert(String(transaction)) }
        }
      }
      state.withLock { state in
        state.streams[device.clientID] = nil
        state.ends.append(.now)
      }
    }
  }

  /// Begins requests and answers them.
  func answer(as user: String, _ device: DeviceClient) {
    work(with: device) { [self] device in
      let transaction = try begin(for: user, device)
      try device.send(device.answer(transaction, .accept), to: transaction).expect(200)
      state.withLock { $0.answers += 1 }
      usleep(20_000)
    }
  }

  func begin(for user: String, _ device: DeviceClient) throws -> String {
    try server.begin(of: user, on: device, as: portal)
  }

  /// Ends everything, and waits for it.
  func stop() async {
    end()
    _ = await working.first(within: patience) { $0 == 0 ? true : nil }
  }

  /// Ends everything.
  func end() {
    state.withLock { state in
      state.isStopping = true
      for stream in state.streams.values { stream.send(SIGKILL) }
    }
  }

  /// Repeats `body` on a thread with a client of its own.
  private func work(with device: DeviceClient, _ body: @escaping @Sendable (DeviceClient) throws -> Void) {
    let copy = DeviceClient(device, at: server)
    working.change { $0 += 1 }
    Thread.detachNewThread { [self] in
      while !state.withLock(\.isStopping) {
        do { try body(copy) } catch { state.withLock { if !$0.isStopping { $0.failures.append("\(error)") } } }
      }
      working.change { $0 -= 1 }
    }
  }
}

/// A program that sends ten requests a second over a connection that it keeps as long as the server does.
final class KeptConnection {
  private let program: RunningProgram
  private let file: String

  init(_ server: TokenServerProcess) throws {
    file = server.directory + "/kept-connection"
    program = try RunningProgram(
      Curl.program,
      [
        "--silent", "--show-error", "--cacert", server.directory + "/ca.pem", "--rate", "10/s",
        "--output", "/dev/null", "--write-out", "%{stderr}%{http_code} %{num_connects}\n",
        server.url + "/.well-known/oauth-authorization-server?[1-5000]",
      ], errors: file)
  }

  /// Ends the program.
  /// - Returns: the status and the number of new connections for each request.
  func stop() throws -> [String] {
    program.send(SIGKILL)
    program.waitForEnd()
    return try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").map(String.init)
  }
}
