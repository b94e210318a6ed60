// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import ServerTestSupport
import Testing

@Suite("SIGHUP to a server without a terminal", .timeLimit(.minutes(5)), .mayBlock) struct HangUpTests {
  @Test("Ends nothing, and the log names what to do") func hangUp() async throws {
    let server = try TokenServerProcess()
    kill(server.processIdentifier, SIGHUP)
    try await eventually("the log has the line") {
      server.log.contains("SIGHUP: no file is read again while the server runs; restart it for that") ? () : nil
    }
    #expect(try server.curl(server.url + "/.well-known/oauth-authorization-server").status == 200)
    #expect(server.stop() == 0)
  }
}
