// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import OpenPGP
import ReferenceProtocol
import Secrets
import ServerTestSupport

/// A server with a fingerprint and a badge, and alice's device, which has announced both.
struct AuthenticatorFixture {
  let pin: PINFixture
  let device: DeviceClient
  let scripts: TestScripts

  /// - Parameter timeLimit: of the scripts, in s.
  private static func configuration(timeLimit: Int) -> String {
    """
    access_log = true
    [application]
    pin = true
    biometric = true
    custom_authenticators = true
    [[authenticator]]
    id = "finger"
    name = "Fingerprint"
    kind = "biometric"
    [[authenticator]]
    id = "badge"
    name = "Company badge"
    kind = "custom"
    scripts = "authenticators/badge"
    time_limit_seconds = \(timeLimit)
    max_failures = 2
    [[type]]
    name = "payment"
    method = "push_with_pin"
    request_expires_in = 600
    [[type]]
    name = "login"
    method = "push"
    request_expires_in = 600
    [[type]]
    name = "touch"
    method = "push_with_fingerprint"
    request_expires_in = 600
    [[type]]
    name = "touch-only"
    method = "push_with_fingerprint"
    request_expires_in = 600
    authenticator = "finger"
    fallback = "none"
    [[type]]
    name = "badge"
    method = "push_with_custom_authenticator"
    request_expires_in = 600
    """
  }

  /// - Parameters:
  ///   - types: more of the configuration.
  ///   - scriptTime: the time limit of the scripts, in s: long, because the machine may be busy.
  init(_ types: String = "", scriptTime: Int = 60) throws {
    let ready = try ReadyServer(configuration: Self.configuration(timeLimit: scriptTime) + types, withPIN: true)
    pin = PINFixture(ready)
    device = ready.device
    scripts = try TestScripts(in: ready.server.directory + "/authenticators/badge")
    try device.announce(biometric: ["finger"], custom: ["badge"])
    try device.logInWithPIN().expect(200)
  }

  var server: TokenServerProcess { pin.server }

  func entry(_ id: String) throws -> AuthenticatorEntry? {
    try device.authenticators().first { $0.identifier == id }
  }

  static let badge = Array("badge 7".utf8)

  func beginBadge(key: String = Random.uuid()) throws -> Curl.Reply {
    let ephemeral = try OpenPGPKey.generate(userID: "ephemeral")
    var body = try device.registrationBody("badge", data: Self.badge, ephemeral: ephemeral)
    body.assertion = nil
    return try device.beginRegistration("badge", body, key: key)
  }

  func registerBadge() throws -> SecretBytes {
    try scripts.answer(status: 2000, data: "welcome", registrationData: "card 7")
    return try device.registerAuthenticator("badge", data: Self.badge)
  }

  func count(_ table: String) throws -> Int {
    try server.count(table)
  }
}
