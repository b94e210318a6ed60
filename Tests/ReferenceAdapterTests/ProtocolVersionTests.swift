// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import MobileAuth
import ReferenceProtocol
import Testing

@testable import ReferenceAdapter

@Suite(.timeLimit(.minutes(5))) struct ProtocolVersionTests {
  private let server: FakeServer
  private let http: RecordingHTTPTransport

  init() throws {
    server = try FakeServer()
    http = server.makeHTTPTransport()
  }

  private func configuration(_ member: String) -> String {
    #"{"transports":["sse"],"openpgp_profiles":[],"minimum_software_version":"0","pin_required":false,"#
      + member + #""server_time_ms":1}"#
  }

  private func serveValidation(_ member: String) {
    server.on(
      "/validations",
      #"{"configuration":"# + configuration(member) + #","removed_profiles":[],"disenrolled_profiles":[]}"#)
  }

  @Test(
    "A validation succeeds if the server announces a common version or none",
    arguments: ["", #""protocol_versions":"1-1","#, #""protocol_versions":"2-7","#])
  func commonVersion(member: String) async throws {
    let adapter = try server.adapter(http)
    serveValidation(member)
    _ = try await adapter.validate()
    let request = try #require(http.requests.last { $0.url.hasSuffix("/validations") })
    #expect(request.headers[ProtocolVersions.headerName] == ProtocolVersions.supported.text)
  }

  @Test("A server that no longer supports this token's versions is not contacted any more, and the error says why")
  func outdatedToken() async throws {
    let adapter = try server.adapter(http)
    serveValidation(#""protocol_versions":"3-5","#)
    let error = await #expect(throws: TokenServerError.self) { try await adapter.validate() }
    #expect(error?.effect == .stop && error?.number == 9004)
    #expect(error?.description.contains("the token server versions 3 to 5: update the token") == true)
  }

  @Test("A malformed announcement does not come from the token server", arguments: [#""2-1""#, "2", #""x""#])
  func malformedAnnouncement(value: String) async throws {
    let adapter = try server.adapter(http)
    serveValidation(#""protocol_versions":\#(value),"#)
    let error = await #expect(throws: TokenServerError.self) { try await adapter.validate() }
    #expect(error?.effect == .retry)
  }

  @Test(
    "The server's refusal of a version reaches the operator as a sentence, also in a registration",
    arguments: [(9004, TokenServerError.outdated("d")), (10001, .configurationInvalid("d"))])
  func refusedRegistration(code: Int, expected: TokenServerError) {
    let body = #"{"error":"invalid_client_metadata","error_code":\#(code),"error_description":"d"}"#
    #expect(TokenServerError(oauth: HTTPResponse(status: 400, body: Array(body.utf8))) == expected)
  }
}
