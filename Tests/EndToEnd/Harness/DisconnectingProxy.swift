// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import BuiltPrograms
import Foundation
import FreePorts
import Glibc
import ProgramHarness
import Synchronization

/// A TCP proxy between the token and its server that can break connections. It forwards bytes without parsing them: TLS
/// is end to end. A token that is killed during a call is gone for the server only when that has answered, as after a
/// power loss.
final class DisconnectingProxy: Sendable {
  private struct Connection {
    let server: Int32
    /// Whether the server has sent something after the last request.
    var isAnswered = true
    /// Whether its caller is gone.
    var isOrphan = false
  }

  private struct State {
    var target = 0
    /// Whether data from the server is discarded.
    var isSwallowing = false
    /// Whether new connections are refused.
    var isRefusing = false
    /// By the descriptors of their callers.
    var connections: [Int32: Connection] = [:]
    /// When data was last forwarded or discarded.
    var lastData = ContinuousClock.now

    /// Whether every request was answered, as far as callers have sent it, and no data was forwarded for a while: a new
    /// TLS connection and the parts of a response are several answers.
    var isPaused: Bool {
      .now - lastData > .milliseconds(300)
        && connections.allSatisfy { caller, connection in connection.isAnswered && !isReadable(caller, within: .zero) }
    }
  }

  private final class Wire: Sendable {
    /// A client ends a TLS connection with an alert, which has no answer. Requests have more bytes.
    private static let longestAlert = 64

    let state = Mutex(State())

    func carry(_ caller: Int32) {
      let target = state.withLock { $0.isRefusing ? nil : $0.target }
      guard let target, let server = Loopback.connect(to: target) else {
        Glibc.close(caller)
        return
      }
      state.withLock { $0.connections[caller] = Connection(server: server) }
      let finished = DispatchSemaphore(value: 0)
      Thread.detachNewThread { [self] in
        returnAnswers(from: server, to: caller)
        finished.signal()
      }
      forwardRequests(from: caller, to: server)
      finished.wait()
      state.withLock { $0.connections[caller] = nil }
      Glibc.close(caller)
      Glibc.close(server)
    }

    private func forwardRequests(from caller: Int32, to server: Int32) {
      let size = 16_384
      var chunk = [UInt8](repeating: 0, count: size)
      while isReadable(caller, within: nil) {
        // Read and noted at once: a request is always seen by `isPaused`.
        let count = state.withLock { state in
          let length = read(caller, &chunk, size)
          if length > 0 { state.lastData = .now }
          if length > Self.longestAlert { state.connections[caller]?.isAnswered = false }
          return length
        }
        guard count > 0, sendAll(chunk[..<count], to: server) else { break }
      }
      let isAnswered = state.withLock { state in
        state.connections[caller]?.isOrphan = true
        return state.connections[caller]?.isAnswered ?? true
      }
      if isAnswered { end(caller, server) }
    }

    private func returnAnswers(from server: Int32, to caller: Int32) {
      var chunk = [UInt8](repeating: 0, count: 16_384)
      while case let count = read(server, &chunk, chunk.count), count > 0 {
        let isForwarded = state.withLock { $0.isSwallowing } || sendAll(chunk[..<count], to: caller)
        let isOrphan = state.withLock { state in
          state.lastData = .now
          state.connections[caller]?.isAnswered = true
          return state.connections[caller]?.isOrphan ?? true
        }
        guard isForwarded, !isOrphan else { break }
      }
      end(caller, server)
    }

    private func end(_ caller: Int32, _ server: Int32) {
      for end in [caller, server] { shutdown(end, Int32(SHUT_RDWR)) }
    }
  }

  private let wire = Wire()
  private let loopback: Loopback

  init() throws { loopback = try Loopback { [wire] in wire.carry($0) } }

  /// The server's issuer must be this address; otherwise DPoP proofs would name another server.
  var issuer: String { "https://127.0.0.1:\(loopback.port)" }

  /// - Returns: the port that the server must listen on.
  func findTarget() throws -> Int {
    let port = try FreePort.reserve()
    wire.state.withLock { $0.target = port }
    return port
  }

  /// The port that the server listens on.
  var target: Int { wire.state.withLock { $0.target } }

  /// Forwards new connections to another port.
  func redirect(to port: Int) { wire.state.withLock { $0.target = port } }

  /// Waits until the server has answered all that callers have sent, also callers that are gone.
  func pause() async throws {
    _ = try await eventually("the answers of the server") { wire.state.withLock { $0.isPaused } ? true : nil }
  }

  /// Forwards data to the server, but discards its responses from now on. Begins in a pause: a call that has no
  /// response keeps its connection, and no other one can be opened.
  func swallowAnswers() async throws {
    try await pause()
    wire.state.withLock { $0.isSwallowing = true }
  }

  /// Closes every connection.
  /// - Parameter refusing: whether new connections are refused too, until `mend()`.
  func cut(refusing: Bool = false) {
    wire.state.withLock { state in
      state.isSwallowing = false
      state.isRefusing = refusing
      for (caller, connection) in state.connections {
        for end in [caller, connection.server] { shutdown(end, Int32(SHUT_RDWR)) }
      }
    }
  }

  func mend() { wire.state.withLock { $0.isRefusing = false } }

  func close() {
    loopback.close()
    cut()
  }
}
