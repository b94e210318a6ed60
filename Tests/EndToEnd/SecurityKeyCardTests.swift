// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import BuiltPrograms
import Foundation
import ProgramHarness
import TestBadge
import TestSecurityKey
import Testing

extension EndToEnd.Plugins {
  @Test("A security key over NFC registers, and approves, also after it was removed in the middle")
  func securityKeyOverNFC() async throws {
    let reader = try TestPCSC()
    let key = try TestSecurityKey(credentialSize: 300)
    let card = TestKeyCard(of: key)
    let plugin = """
      authenticator = "key"
      command = ["/usr/bin/env", "PCSCLITE_CSOCK_NAME=\(reader.socket)", "\(try BuiltProgram.path("reader-key-probe"))",
        "--cards"]
      """
    /// Presents the key until that has the effect: what is there when a request is shown does not count.
    func present<Effect>(until what: String, _ effect: () async throws -> Effect?) async throws -> Effect {
      for _ in 1...20 {
        card.insert(into: reader)
        if let found = try? await eventually(what, within: .seconds(5), effect) { return found }
        card.remove()
        // pcscd looks for cards every 0.4 s: a removal that it does not see is none.
        try await Task.sleep(for: .seconds(1))
      }
      throw OutputTimeoutError(description: what)
    }
    let types = Self.types("key", verifiedBy: "signature = \"security_key\"")
    try await withPlugin(plugin, types) { fixture in
      let token = fixture.token
      try await register("key", token) {
        _ = try await present(until: "the key has signed") { key.calls.suffix(2) == [1, 2] ? true : nil }
      }
      card.remove()
      try await Task.sleep(for: .seconds(1))

      let before = key.calls.count
      let transaction = try await fixture.askForPIN(type: "transfer")
      _ = try await present(until: "the request is signed") { key.calls.count > before ? true : nil }
      #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
      let result = try await fixture.portal.finalResult(of: transaction)
      #expect(result.isAuthenticated && result.authenticationMethod == "push_with_custom_authenticator")

      // It is removed while it waits for its user, and presented again.
      card.remove()
      try await Task.sleep(for: .seconds(1))
      key.set(.untouched)
      let asked = key.calls.count
      let interrupted = try await fixture.askForPIN(type: "transfer")
      _ = try await present(until: "the key waits") { key.calls.count > asked ? true : nil }
      card.remove()
      key.set(.touched(after: .zero))
      try await Task.sleep(for: .seconds(1))
      _ = try await present(until: "the key signs") { key.calls.count > asked + 1 ? true : nil }
      #expect(try await fixture.settled(interrupted).hasPrefix("approved, receipt "))
      #expect(try await fixture.server.pinFailures() == 0)
    }
  }
}
