// SPDX-License-Identifier: Apache-2.0
import AuthenticatorPlugins
package import ControlProtocol
import Glibc
import MobileAuth
import RelayProtocol
import TOMLSyntax

/// `serve --config FILE`. Command-line options override it; unknown keys are errors.
///
/// ```toml
/// board = "simulated"
/// state = "/var/lib/approval-token"
///
/// [tls]
/// authorities = "/etc/approval-token/ca.pem"
///
/// [push] # see `PushSettings`
///
/// [mqtt] # see `BrokerSettings`
///
/// [display]
/// follows_watch = false # whether a display of this board shows what `approval-token watch` prints
///
/// [authenticators]
/// keypad_codes = ["employee-number"] # custom authenticators whose data is a code, typed on the keypad
/// simulated = ["voice"] # on the simulated board: custom authenticators that `simulate custom` answers
/// simulated_key = "key" # on the simulated board: a security key, for `simulate key`
/// simulated_badge = "badge" # on the simulated board: a badge, for `simulate badge`
/// simulated_fingerprint = "finger" # on the simulated board: a fingerprint reader, for `simulate finger`
/// fingerprint_hours = 12 # how long a right PIN makes fingerprints usable, 1 to 168
///
/// [log]
/// texts = false # whether the audit chain has the verified texts of requests, not only their digests
/// ```
package struct Configuration: Equatable, Sendable {
  package var board: String?
  package var state: String?
  /// A PEM file with certificate authorities in addition to the system's.
  var authorities: String?
  var push = PushSettings()
  var mqtt: BrokerSettings?
  /// Whether a display shows the verified texts. Servers then send requests that require a display.
  var hasDisplay = false
  /// The identifiers of the custom authenticators whose data is a code, typed on the keypad.
  var keypadCodes: [String] = []
  /// The identifiers of the custom authenticators that `simulate custom` answers, on the simulated board.
  var simulatedAuthenticators: [String] = []
  /// The identifiers of a security key, a badge and a fingerprint on the simulated board; nil for none.
  var simulatedKey: String?
  var simulatedBadge: String?
  var simulatedFingerprint: String?
  /// How long a right PIN makes fingerprints usable.
  var fingerprintLifetime = Duration.seconds(12 * 3600)
  /// The files of the folder `authenticators.d` beside the configuration.
  var plugins: [PluginConfiguration] = []
  /// Whether the audit chain and the log have the verified texts of requests.
  var recordsTexts = false

  package init() {}

  init(parsing toml: String, file: String) throws(CommandError) {
    do {
      var reader = TableReader(try TOMLSyntax.parse(toml))
      board = try reader.optionalText("board")
      state = try reader.optionalText("state")
      var tls = try reader.table("tls")
      authorities = try tls.optionalText("authorities")
      try tls.finish()
      var push = try reader.table("push")
      self.push = try PushSettings(&push)
      if reader.has("mqtt") {
        var mqtt = try reader.table("mqtt")
        self.mqtt = try BrokerSettings(&mqtt)
      }
      var display = try reader.table("display")
      hasDisplay = try display.flag("follows_watch", default: false)
      try display.finish()
      var authenticators = try reader.table("authenticators")
      keypadCodes = try Self.identifiers("keypad_codes", in: &authenticators)
      simulatedAuthenticators = try Self.identifiers("simulated", in: &authenticators)
      simulatedKey = try Self.identifier("simulated_key", in: &authenticators)
      simulatedBadge = try Self.identifier("simulated_badge", in: &authenticators)
      simulatedFingerprint = try Self.identifier("simulated_fingerprint", in: &authenticators)
      if authenticators.has("fingerprint_hours") {
        fingerprintLifetime = .seconds(3600 * (try authenticators.number("fingerprint_hours", 1...168)))
      }
      try authenticators.finish()
      var log = try reader.table("log")
      recordsTexts = try log.flag("texts", default: false)
      try log.finish()
      try reader.finish()
    } catch let error as TOMLSyntax.ParseError {
      throw CommandError(.badData, "\(file): not TOML: \(error)")
    } catch let refusal as TableReader.TableError {
      throw CommandError(.badData, "\(file): \(refusal.why)")
    } catch let failure as CommandError { throw failure } catch {
      throw CommandError(.badData, "\(file): \(error)")
    }
  }

  private static func identifier(
    _ key: String, in table: inout TableReader
  ) throws(TableReader.TableError) -> String? {
    guard let identifier = try table.optionalText(key) else { return nil }
    guard Authenticator.isIdentifier(identifier), identifier != Authenticator.pinIdentifier else {
      throw table.refusal(key, "must be an identifier of the token server's authenticators")
    }
    return identifier
  }

  private static func identifiers(
    _ key: String, in table: inout TableReader
  ) throws(TableReader.TableError) -> [String] {
    guard table.has(key) else { return [] }
    let identifiers = try table.texts(key)
    guard identifiers.count <= AuthenticatorDrivers.most, Set(identifiers).count == identifiers.count,
      identifiers.allSatisfy(Authenticator.isIdentifier), !identifiers.contains(Authenticator.pinIdentifier)
    else {
      throw table.refusal(key, "must be at most 16 different identifiers of the token server's authenticators")
    }
    return identifiers
  }

  /// Reads a configuration, and the folder `authenticators.d` beside it.
  package static func read(_ file: String) throws(CommandError) -> Configuration {
    var configuration = try Configuration(parsing: try text(of: file), file: file)
    configuration.plugins = try PluginConfiguration.read(beside: file)
    try configuration.requireDistinctAuthenticators()
    try requireUsable(configuration.authorities, "\(file): `tls.authorities`")
    try requireUsable(configuration.mqtt?.authorities, "\(file): `mqtt.authorities`")
    return configuration
  }

  /// Later, a file of authorities that the network process does not get would look like a certificate that is not
  /// trusted.
  private static func requireUsable(_ authorities: String?, _ key: String) throws(CommandError) {
    guard let authorities else { return }
    var status = stat()
    guard access(authorities, R_OK) == 0, stat(authorities, &status) == 0 else {
      throw CommandError(.badData, "\(key): cannot read \(authorities): \(String(cString: strerror(errno)))")
    }
    guard status.st_size <= RelayTrust.longestAuthorities else {
      throw CommandError(
        .badData, "\(key): \(authorities) has \(status.st_size) bytes; at most \(RelayTrust.longestAuthorities)")
    }
  }

  static func text(of file: String) throws(CommandError) -> String {
    String(decoding: try fileContents(file), as: UTF8.self)
  }
}
