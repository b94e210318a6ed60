// SPDX-License-Identifier: Apache-2.0
import Foundation
import Synchronization

/// A running server with one portal and one device of the user alice, with the profile PROF01. Each test has its own
/// copy of a server at which the device was enrolled over HTTP, once for all tests of this process.
package struct ReadyServer: Sendable {
  package let server: TokenServerProcess
  package let device: DeviceClient
  package let portal: (id: String, secret: String)

  /// - Parameters:
  ///   - configuration: the complete `config.toml`; nil for the file of `init`.
  ///   - withPIN: whether alice has a PIN and the configuration contains `pin = true`.
  package init(configuration: String? = nil, withPIN: Bool = false) throws {
    let original = try withPIN ? Original.withPIN.current() : Original.withoutPIN.current()
    server = try TokenServerProcess(
      configuration: configuration, directory: ServerDirectories.copy(of: original.device.server.directory))
    device = DeviceClient(original.device, at: server)
    portal = original.portal
    // A nonce is valid in one server process only, and an access token for 15 minutes.
    try device.logIn().expect(200)
  }
}

/// A portal and a device that were enrolled at a server, which has been stopped.
private struct Original: Sendable {
  let device: DeviceClient
  let portal: (id: String, secret: String)
  private let made = ContinuousClock.now

  init(withPIN: Bool) throws {
    let pin = "[application]\npin = true\n[[type]]\nname = \"login\"\nmethod = \"push\""
    let server = try TokenServerProcess(configuration: withPIN ? pin : nil)
    portal = try server.addPortal()
    device =
      try withPIN
      ? DeviceClient.enrolledWithPIN(at: server, as: "alice") : DeviceClient.enrolled(at: server, as: "alice")
    guard server.stop() == 0 else { throw Curl.CurlError(description: "the server did not stop: \(server.log)") }
    ServerDirectories.keep(server.directory)
  }

  static let withPIN = Kept { try Original(withPIN: true) }
  static let withoutPIN = Kept { try Original(withPIN: false) }

  /// Creates the original at the first call, and again when its access tokens could expire during a test.
  final class Kept: Sendable {
    private let state = Mutex<Original?>(nil)
    private let make: @Sendable () throws -> Original

    init(_ make: @escaping @Sendable () throws -> Original) { self.make = make }

    func current() throws -> Original {
      try state.withLock { kept in
        if let kept, ContinuousClock.now - kept.made < .seconds(300) { return kept }
        let new = try make()
        kept = new
        return new
      }
    }
  }
}
