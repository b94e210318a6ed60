// SPDX-License-Identifier: Apache-2.0
import Boards
import Glibc
import MobileAuth
@testable import PingAMAdapter
import ReferenceProtocol

@testable import ApprovalToken

/// Both sides of the control socket: lines, requests, and a command's handling of the service's answers.
func readControlMessage(_ bytes: [UInt8]) {
  let input = Input(bytes, choices: 4)
  switch input.choice {
  case 0: for line in lines(input.bytes) { readCall(line) }
  case 1: readCall(input.bytes)
  case 2: readAnswers(input.bytes)
  default: _ = ListenAddress(input.text)?.description
  }
}

/// Splits the input into lines with a real socket.
private func lines(_ bytes: [UInt8]) -> [[UInt8]] {
  var ends: [Int32] = [0, 0]
  // The data must fit into the socket's buffer, because no reader runs at the same time.
  guard bytes.count <= 65_536, socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else { return [] }
  let socket = UnixSocket(descriptor: ends[0])
  let written = bytes.isEmpty ? 0 : send(ends[1], bytes, bytes.count, Int32(MSG_NOSIGNAL))
  close(ends[1])
  require(written == bytes.count, "the socket takes it")
  var lines: [[UInt8]] = []
  while let line = try? socket.readLine() { lines.append(line) }
  return lines
}

private func readCall(_ line: [UInt8]) {
  guard let call = try? JSON.decode(ControlCall.self, from: line) else { return }
  for key in call.keys ?? [] { _ = SimulatedKeypad.Act(key) }
  if let uri = call.uri { readURI(Array(uri.utf8)) }
  if let message = call.message { _ = PushReceiver().ingress.isFinal(Array(message.utf8)) }
  require((try? JSON.decode(ControlCall.self, from: JSON.encode(call))) != nil, "a call survives being written")
}

private func readAnswers(_ line: [UInt8]) {
  _ = try? JSON.decode(ControlFailure.self, from: line)
  _ = try? JSON.decode(ControlProgress.self, from: line)
  _ = try? JSON.decode(ServiceStatus.self, from: line)
  _ = try? JSON.decode([PendingSummary].self, from: line).map { $0.message?.sanitized(atMost: 1000) }
  _ = try? JSON.decode(CodeResponse.self, from: line)
  _ = try? JSON.decode(LEDStatus.self, from: line)
}
