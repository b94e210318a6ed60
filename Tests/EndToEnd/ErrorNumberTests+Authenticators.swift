// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

extension EndToEnd.ErrorNumbers {
  @Test("9030: the proof of a fingerprint is wrong, and the server deregisters it") func biometricFailed() async throws
  {
    try await withPINScene(
      settings: EndToEnd.Fingerprints.settings, types: EndToEnd.Fingerprints.types,
      configuration: { _ in "[authenticators]\nsimulated_fingerprint = \"finger\"\n" }
    ) { fixture in
      let token = fixture.token
      try await token.registerFinger { _ in try await token.present("index") }
      try await token.command("logout").succeeded()
      // The public key of the first test of RFC 8032.
      let key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
      try await fixture.server.edit("UPDATE authenticator SET public_key = x'\(key)'")
      let login = try token.begin("login", "alice", "--authenticator", "finger", "--json")
      try await token.present("index")
      // The PIN is left.
      try await expect("challenge", 9030, at: token)
      try await token.type("13589")
      try await login.outcome().succeeded()
      #expect(try await fixture.server.account()?.authenticators == [])
    }
  }

  @Test("10020: the server has disabled custom authenticators in the middle of a registration") func customDisabled()
    async throws
  {
    let types = """
      [[authenticator]]
      id = "badge"
      name = "Badge"
      kind = "custom"
      signature = "badge"

      """
    try await withPINScene(
      settings: "max_pin_attempts = 3\ncustom_authenticators = true", types: types,
      configuration: { _ in "[authenticators]\nsimulated_badge = \"badge\"\n" }
    ) { fixture in
      let token = fixture.token
      let registration = try token.begin("authenticator", "register", "alice", "badge", "--json")
      try await token.type("13589")
      try await token.asks("confirmation wanted")
      try await fixture.server.stop()
      try fixture.server.rewrite {
        $0.replacing("custom_authenticators = true", with: "custom_authenticators = false")
      }
      try await fixture.server.start()
      try await token.perform(.hold)
      try await token.presentWhenAsked(.init(badge: "red"))
      expectRefusal(try await registration.outcome(), 10020)
      try await expect("registration-failed", 10020, at: token)
    }
  }
}
