// SPDX-License-Identifier: Apache-2.0
import Foundation
import ReferenceProtocol
import ServerTestSupport
import Testing

/// Which authenticators a server offers to a device. Each test is a row of docs/seeds.md.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AuthenticatorAvailabilityTests {
  let fixture: AuthenticatorFixture
  let device: DeviceClient

  init() throws {
    fixture = try AuthenticatorFixture()
    device = fixture.device
  }

  private func listed() throws -> [String] { try device.authenticators().map(\.identifier).sorted() }

  @Test("A fingerprint authenticator is offered beside the PIN") func besideThePIN() throws {
    #expect(try fixture.entry("finger")?.supported == true)
    _ = try device.registerAuthenticator("finger")
    #expect(try fixture.entry("finger")?.registered == true && fixture.entry("pin")?.registered == true)
  }

  @Test("The requirements for being available depend on the kind") func requirementsOfEachKind() throws {
    // A fingerprint wants a reader, a custom authenticator also both scripts, the PIN nothing.
    try device.announce()
    #expect(try listed() == ["pin"])
    try device.announce(biometric: ["finger"])
    #expect(try listed() == ["finger", "pin"])
    try device.announce(custom: ["badge"])
    #expect(try listed() == ["badge", "pin"])
    try FileManager.default.removeItem(atPath: fixture.scripts.folder + "/register")
    #expect(try listed() == ["pin"])
  }

  @Test("Only what both server and token support is available") func supportedByBoth() throws {
    try device.announce(biometric: ["finger", "iris"])
    #expect(try listed() == ["finger", "pin"])
    // An identifier that the server has for another kind.
    try device.announce(biometric: ["badge"], custom: ["finger"])
    #expect(try listed() == ["pin"])
  }

  @Test("The kind is PIN, biometric or custom (type)") func kinds() throws {
    let kinds = try device.authenticators().map { ($0.identifier, $0.type) }
    #expect(Dictionary(uniqueKeysWithValues: kinds) == ["pin": .pin, "finger": .biometric, "badge": .custom])
  }
}
