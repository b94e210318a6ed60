import Foundation
import Synchronization

/// A running server with one portal and one device of the user alice, profile PROF01: a copy, of one test's own, of a
/// server on which they were enrolled over HTTP once for all tests of this process.
public struct ReadyServer: Sendable {
  public let server: TokenServer
  public let device: DeviceClient
  public let portal: (id: String, secret: String)

  /// - Parameters:
  ///   - configuration: the whole `config.toml`; nil leaves what `init` wrote.
  ///   - withPIN: alice has a PIN, and the configuration has `pin = true`.
  public init(configuration: String? = nil, withPIN: Bool = false) throws {
    let original = try withPIN ? Original.withPIN.current() : Original.withoutPIN.current()
    server = try TokenServer(
      configuration: configuration, directory: ServerDirectories.copy(of: original.device.server.directory))
    device = DeviceClient(original.device, at: server)
    portal = original.portal
    // Nonces are good for one process of a server, and tokens for 15 minutes.
    try device.logIn().expect(200)
  }
}

/// What enrolled at a server, which has stopped since.
private struct Original: Sendable {
  let device: DeviceClient
  let portal: (id: String, secret: String)
  private let made = ContinuousClock.now

  init(withPIN: Bool) throws {
    let pin = "[application]\npin = true\n[[type]]\nname = \"login\"\nmethod = \"push\""
    let server = try TokenServer(configuration: withPIN ? pin : nil)
    portal = try server.addPortal()
    device =
      try withPIN
      ? DeviceClient.enrolledWithPIN(at: server, as: "alice") : DeviceClient.enrolled(at: server, as: "alice")
    guard server.stop() == 0 else { throw Curl.Failure(description: "the server did not stop: \(server.log)") }
    ServerDirectories.keep(server.directory)
  }

  static let withPIN = Kept { try Original(withPIN: true) }
  static let withoutPIN = Kept { try Original(withPIN: false) }

  /// Made at the first call, and again when the access tokens of the one before could end in the middle of a test.
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
