// SPDX-License-Identifier: Apache-2.0
import Glibc
import UnixSockets

/// The client side of the control socket.
package struct ControlClient: Sendable {
  /// How many seconds the service may take where neither a user nor a server is waited for.
  @TaskLocal package static var patience: Int = 20

  package let path: String

  /// - Parameter path: of the socket.
  package init(path: String) { self.path = path }

  /// Sends one request and decodes one answer.
  /// - Parameters:
  ///   - seconds: the longest wait for anything of the answer; nil for none, where a user or a server is waited for.
  ///   - progress: receives the steps that the service reports before the answer.
  package func call<Answer: Decodable>(
    _ request: ControlRequest, _ type: Answer.Type, within seconds: Int? = nil, progress: (String) -> Void = { _ in }
  ) throws -> Answer {
    var answer: Answer?
    try follow(request, type, within: seconds, progress: progress) {
      answer = $0
      return false
    }
    guard let answer else { throw CommandError(.unavailable, "the service ended without an answer; see its log") }
    return answer
  }

  /// Sends one request and passes answers to `take` until it returns false or the service ends the connection.
  /// - Parameter seconds: as for `call`. For a place at the service, the longest wait is `patience` if it is nil.
  package func follow<Answer: Decodable>(
    _ request: ControlRequest, _ type: Answer.Type, within seconds: Int? = nil,
    progress: (String) -> Void = { _ in }, take: (Answer) throws -> Bool
  ) throws {
    do {
      let socket = try UnixSocket.connected(to: path, within: seconds ?? Self.patience)
      if let seconds { socket.setTimeout(seconds: seconds) }
      try Self.send(request, on: socket)
      while let line = try socket.readLine() {
        switch try ControlResponse<Answer>(line: line) {
        case .progress(let step): progress(step)
        case .answer(let answer): guard try take(answer) else { return }
        case .failure(let error): throw error
        }
      }
    } catch let failure as UnixSocket.SocketError { throw Self.explain(failure, path) }
  }

  /// A service that refuses the connection closes it at once: its reason is read nevertheless.
  ///
  /// In a function of its own: Swift 6.2.3 aborts when it compiles such a `catch` within another `do`.
  private static func send(_ request: ControlRequest, on socket: UnixSocket) throws(UnixSocket.SocketError) {
    do { try socket.write(line: request.line) } catch {
      guard case .call(_, EPIPE) = error else { throw error }
    }
  }

  /// Whether a service listens at this moment, also one that accepts no further connection. Does not wait.
  package var isServiceRunning: Bool { (try? UnixSocket.isInUse(path)) == true }

  private static func explain(_ failure: UnixSocket.SocketError, _ path: String) -> CommandError {
    let directory = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
    return switch failure {
    case .call(_, ENOENT), .call(_, ECONNREFUSED):
      CommandError(
        .unavailable, "the service is not running (no answer at \(path)): \(InstalledService.start(of: directory))",
        isServiceMissing: true)
    case .call(_, EACCES), .call(_, EPERM): .noPermission(for: path)
    case .call(_, EAGAIN): CommandError(.unavailable, "the service does not answer at \(path); see its log")
    default: CommandError(.unavailable, "\(failure)")
    }
  }
}

extension CommandError {
  /// - Parameter path: the socket or the state directory.
  package static func noPermission(for path: String) -> CommandError {
    CommandError(
      .refused,
      "no permission for \(path): run this command as the user of the service, such as \(InstalledService.call("…"))")
  }
}
