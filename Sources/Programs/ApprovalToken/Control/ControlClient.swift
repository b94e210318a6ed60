// SPDX-License-Identifier: Apache-2.0
import Glibc
import ReferenceProtocol

/// The client side of the control socket.
struct ControlClient {
  let path: String

  /// Sends one request and decodes one answer.
  func call<Answer: Decodable>(_ call: ControlCall, _ type: Answer.Type) throws -> Answer {
    var answer: Answer?
    try follow(call, type) {
      answer = $0
      return false
    }
    guard let answer else { throw CommandError(.unavailable, "the service ended without an answer; see its log") }
    return answer
  }

  /// Sends one request, prints the service's progress lines, and decodes the answer.
  func callWithProgress<Answer: Decodable>(_ call: ControlCall, _ type: Answer.Type) throws -> Answer {
    var answer: Answer?
    try follow(call, Line<Answer>.self) { line in
      switch line {
      case .progress(let text): say("\(text) …")
      case .answer(let value): answer = value
      }
      return answer == nil
    }
    guard let answer else { throw CommandError(.unavailable, "the service ended without an answer; see its log") }
    return answer
  }

  private enum Line<Answer: Decodable>: Decodable {
    case progress(String)
    case answer(Answer)

    init(from decoder: any Decoder) throws {
      if let progress = try? ControlProgress(from: decoder) {
        self = .progress(progress.progress)
      } else {
        self = .answer(try Answer(from: decoder))
      }
    }
  }

  /// Sends one request and passes answers to `take` until it returns false or the service ends the connection.
  func follow<Answer: Decodable>(
    _ call: ControlCall, _ type: Answer.Type, take: (Answer) throws -> Bool
  ) throws {
    do {
      let socket = try UnixSocket.connected(to: path)
      try socket.write(line: JSON.encode(call))
      while let line = try socket.readLine() {
        if let failure = try? JSON.decode(ControlFailure.self, from: line) {
          throw CommandError(
            CommandError.Code(rawValue: failure.code) ?? .refused, failure.error, number: failure.number)
        }
        guard try take(JSON.decode(type, from: line)) else { return }
      }
    } catch let failure as UnixSocket.SocketError {
      throw Self.explain(failure, path)
    } catch let error as WireError {
      throw CommandError(.badData, "the service's answer is not understood: \(error)")
    }
  }

  private static func explain(_ failure: UnixSocket.SocketError, _ path: String) -> CommandError {
    switch failure {
    case .call(_, ENOENT), .call(_, ECONNREFUSED):
      CommandError(
        .unavailable, "`approval-token serve` is not running (no answer at \(path))", isServiceMissing: true)
    default: CommandError(.unavailable, "\(failure)")
    }
  }
}
