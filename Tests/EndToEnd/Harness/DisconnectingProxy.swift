// SPDX-License-Identifier: Apache-2.0
import Foundation
import FreePorts
import Glibc
import ProgramHarness
import Synchronization

/// A TCP proxy between the token and its server that can break connections. It forwards bytes without parsing them: TLS
/// is end to end.
final class DisconnectingProxy: Sendable {
  private struct State {
    var target = 0
    /// Whether data from the server is discarded.
    var isSwallowing = false
    /// Whether new connections are refused.
    var isRefusing = false
    var ends: Set<Int32> = []
  }

  private final class Wire: Sendable {
    let state = Mutex(State())

    func carry(_ caller: Int32) {
      let target = state.withLock { $0.isRefusing ? nil : $0.target }
      guard let target, let server = Loopback.connect(to: target) else {
        Glibc.close(caller)
        return
      }
      state.withLock { $0.ends.formUnion([caller, server]) }
      let finished = DispatchSemaphore(value: 0)
      Thread.detachNewThread { [self] in
        pump(from: server, to: caller, isAnswer: true)
        finished.signal()
      }
      pump(from: caller, to: server, isAnswer: false)
      finished.wait()
      state.withLock { $0.ends.subtract([caller, server]) }
      Glibc.close(caller)
      Glibc.close(server)
    }

    private func pump(from source: Int32, to sink: Int32, isAnswer: Bool) {
      var chunk = [UInt8](repeating: 0, count: 16_384)
      while true {
        let count = read(source, &chunk, chunk.count)
        guard count > 0 else { break }
        if isAnswer, state.withLock({ $0.isSwallowing }) { continue }
        guard sendAll(chunk[..<count], to: sink) else { break }
      }
      for end in [source, sink] { shutdown(end, Int32(SHUT_RDWR)) }
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

  /// Forwards data to the server, but discards its responses from now on.
  func swallowAnswers() { wire.state.withLock { $0.isSwallowing = true } }

  /// Closes every connection.
  /// - Parameter refusing: whether new connections are refused too, until `mend()`.
  func cut(refusing: Bool = false) {
    wire.state.withLock { state in
      state.isSwallowing = false
      state.isRefusing = refusing
      for end in state.ends { shutdown(end, Int32(SHUT_RDWR)) }
    }
  }

  func mend() { wire.state.withLock { $0.isRefusing = false } }

  func close() {
    loopback.close()
    cut()
  }
}
