// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import MobileAuth
import ReferenceProtocol
import Testing

@testable import ReferenceAdapter

@Suite(.timeLimit(.minutes(5))) struct RegistrationTests {
  @Test("A device registers with the serial number of its board, or with none", arguments: [nil, "10000000abcdef01"])
  func boardSerial(serial: String?) async throws {
    let server = try FakeServer()
    let http = RecordingHTTPTransport { _ throws(HTTPTransportError) in throw .unreachable("no route") }
    let enrollment = Enrollment(
      registry: ApprovalTestKit.MemoryRegistry(), in: server.environment, pinPrompter: nil, boardSerial: serial,
      progress: { _ in }
    ) { _ in http }
    let uri = ActivationURI(server: FakeServer.url, code: try #require(ActivationCode("0000000000000")), pins: [])
    await #expect(throws: TokenServerError.self) {
      try await enrollment.enroll(
        uri, name: nil, trust: ServerTrust(pins: []),
        capabilities: .init(display: .none, keypad: false, button: true, led: .mono))
    }
    let body = try #require(http.requests.first).body
    #expect(try JSON.decode(RegistrationRequest.self, from: body).boardSerial == serial)
    #expect(String(decoding: body, as: UTF8.self).contains("board_serial") == (serial != nil))
  }
}
