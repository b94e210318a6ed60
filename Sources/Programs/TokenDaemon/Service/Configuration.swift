// SPDX-License-Identifier: Apache-2.0
package import ControlProtocol
import Glibc
import MobileAuth
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
      if authenticators.has("keypad_codes") { keypadCodes = try Self.keypadCodes(&authenticators) }
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

  private static func keypadCodes(_ table: inout TableReader) throws(TableReader.TableError) -> [String] {
    let codes = try table.texts("keypad_codes")
    guard codes.count <= 16, Set(codes).count == codes.count, codes.allSatisfy(Authenticator.isIdentifier),
      !codes.contains(Authenticator.pinIdentifier)
    else {
      throw table.refusal(
        "keypad_codes", "must be at most 16 different identifiers of the token server's authenticators")
    }
    return codes
  }

  package static func read(_ file: String) throws(CommandError) -> Configuration {
    guard let stream = fopen(file, "re") else {
      throw CommandError(.badData, "cannot read \(file): \(String(cString: strerror(errno)))")
    }
    defer { fclose(stream) }
    var text = [UInt8](repeating: 0, count: 65_536)
    let count = fread(&text, 1, text.count, stream)
    guard count < text.count else {
      throw CommandError(.badData, "\(file) is too large for a configuration: at most 64 KiB")
    }
    return try Configuration(parsing: String(decoding: text[..<count], as: UTF8.self), file: file)
  }
}
