// SPDX-License-Identifier: Apache-2.0
import Boards
import DisplayText
import Glibc
import HTTP
import JSONValues
import MobileAuth
import UnixSockets

@testable import ControlProtocol
@testable import NetworkDaemon
@testable import PingAMAdapter
@testable import TokenDaemon

/// Both sides of the control socket: lines, requests, and a command's handling of the service's answers.
func readControlMessage(_ bytes: [UInt8]) {
  let input = Input(bytes, choices: 4)
  switch input.choice {
  case 0: for line in lines(input.bytes) { readRequest(line) }
  case 1: readRequest(input.bytes)
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

private func readRequest(_ line: [UInt8]) {
  guard let request = try? ControlRequest(line: line) else { return }
  switch request {
  case .simulate(.keys(let keys)): for key in keys { _ = SimulatedKeypad.Action(key) }
  case .enroll(let options): readURI(Array(options.uri.utf8))
  case .push(let message): _ = PushReceiver().ingress.isFinal(Array(message.utf8))
  case .call(let call): readAddress(call.url)
  case .allow(_, let origin), .disallow(_, let origin): readAddress(origin)
  default: break
  }
  require((try? ControlRequest(line: request.line)) == request, "a request survives being written")
}

private func readAddress(_ text: String) {
  guard let address = HTTPSAddress(text) else { return require(HTTPOrigin(text) == nil, "an origin is an address") }
  require(HTTPSAddress(address.text) == address, "an address has one form")
  require(HTTPOrigin(address.origin.text) == address.origin, "an origin has one form")
}

private func readAnswers(_ line: [UInt8]) {
  _ = try? ControlResponse<ServiceStatus>(line: line)
  if case .answer(let pending)? = try? ControlResponse<PendingResponse>(line: line) {
    _ = pending.requests.map { $0.message?.sanitized(atMost: 1000) }
  }
  _ = try? ControlResponse<CodeResponse>(line: line)
  _ = try? ControlResponse<LEDStatus>(line: line)
  _ = try? ControlResponse<ResourceReply>(line: line)
  _ = try? ControlResponse<PanelChange>(line: line)
  _ = try? ControlResponse<EventLine>(line: line)
}
