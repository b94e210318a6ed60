// SPDX-License-Identifier: Apache-2.0
package import ControlProtocol
import Glibc
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
