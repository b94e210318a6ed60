import Foundation
import Glibc
import ProgramHarness
import Synchronization

/// A wire between the token and its server that can be cut. It passes bytes and understands none of them: TLS goes
/// through end to end.
final class CuttingProxy: Sendable {
  private struct State {
    var target = 0
    /// Nothing from the server reaches the token.
    var isSwallowing = false
    /// Whoever comes is sent away.
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

  /// The server's configuration must call itself by this, or proofs would name another server.
  var issuer: String { "https://127.0.0.1:\(loopback.port)" }

  /// - Returns: the port that the server must listen on.
  func findTarget() throws -> Int {
    let port = try Loopback.freePort()
    wire.state.withLock { $0.target = port }
    return port
  }

  /// From now on the server hears the token, and the token hears nothing.
  func swallowAnswers() { wire.state.withLock { $0.isSwallowing = true } }

  /// Cuts every connection.
  /// - Parameter refusing: whether new ones do not work either, until `mend()`.
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
