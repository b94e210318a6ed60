// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

extension EndToEnd {
  /// `enroll --pin`.
  @Suite struct GivenPins {
    /// Fails if a trusted authority is enough although the user has named the server's key.
    @Test("A pin that the user gives counts for a URI without one") func aGivenPinCounts() async throws {
      try await withScene { fixture in
        let uri = try await fixture.server.activation(for: "alice")
        let items = try #require(URLComponents(string: uri)?.queryItems)
        let pin = try #require(items.first(where: { $0.name == "pin_sha256" })?.value)
        let enroll = ["enroll", uri.replacing(/&pin_sha256=.*/, with: ""), "--pin"]
        let fresh = TestToken(state: fixture.folder.file("fresh"), board: "simulated")
        let wrong = String(repeating: "A", count: 43) + "="
        let authority = ["--authorities", fixture.server.directory + "/ca.pem"]
        let refused = try await fresh.begin(enroll + [wrong] + authority).outcome()
        #expect(refused.exit == .code(77), "\(refused.errors)")
        #expect(try await fresh.accounts().isEmpty)
        try await fresh.begin(enroll + [pin]).outcome().succeeded()
      }
    }
  }
}
