// SPDX-License-Identifier: Apache-2.0
import HTTP
import ServerBackends
import Testing

@Suite(.timeLimit(.minutes(5))) struct EnrollmentTrustTests {
  /// Fails if the pin has no effect for a URI without one: any trusted authority could then stand for the server.
  @Test("The pins of the URI count, and without any those that the user gives") func pins() throws {
    let context = try OperationsFixture().context
    var request = EnrollmentRequest("plain:x")
    request.pins = ["given"]
    #expect(context.trust(for: request).pins == ["given"])
    #expect(context.trust(for: request, pins: []).pins == ["given"])
    #expect(context.trust(for: request, pins: ["of the URI"]).pins == ["of the URI"])
  }
}
