// SPDX-License-Identifier: Apache-2.0
import Glibc
package import HTTP

/// Why an exchange with the other process has no result.
package enum RelayError: Error, Equatable, Sendable, CustomStringConvertible {
  /// Nothing listens on the socket.
  case notRunning(String)
  /// It has not accepted the order in time: it hangs, or has just ended.
  case notAnswering
  /// It has refused the order.
  case refused(String)
  /// The network process has tried, without success.
  case failed(HTTPTransportError)
  /// The other process ended the connection, or died.
  case closed
  /// Its reply did not come in time.
  case timedOut
  /// The task was canceled.
  case canceled
  /// A message of more bytes than its receiver accepts.
  case tooLong(limit: Int)
  case malformed(String)
  /// The other process speaks another version of the protocol.
  case version
  case call(String, errno: Int32)

  package var description: String {
    switch self {
    case .notRunning(let path): "the network process does not run (no answer at \(path))"
    case .notAnswering: "the network process does not answer"
    case .refused(let reason): "the network process refuses the request: \(reason)"
    case .failed(let error): "\(error)"
    case .closed: "the network process has ended"
    case .timedOut: "the network process did not reply in time"
    case .canceled: "the request was canceled"
    case .tooLong(let limit): "a message of the other process is longer than \(limit) bytes"
    case .malformed(let what): "a message of the other process is malformed: \(what)"
    case .version: "the two processes are of different versions: restart both"
    case .call(let call, let number): "\(call): \(String(cString: strerror(number)))"
    }
  }
}
