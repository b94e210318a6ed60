// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import MQTT
import Secrets
import TOMLSyntax

/// The MQTT broker where token servers publish hints and PingAM's push delegate publishes messages: the table `[mqtt]`.
///
/// ```toml
/// [mqtt]
/// broker = "broker.example.org:8883"  # always TLS
/// authorities = "/etc/approval-token/broker-ca.pem"
/// pins = ["…"]                        # SHA-256 of the key in the broker's certificate, in Base64
/// username = "token7"
/// password_file = "/etc/approval-token/broker-password"
/// version = "5"                       # or "3.1.1"
/// replaces_event_stream = false       # beside the token server's own stream, or in its place
/// ```
struct BrokerSettings: Equatable {
  private enum Version: String, CaseIterable {
    case v5 = "5"
    case v311 = "3.1.1"
  }

  let host: String
  let port: UInt16
  let authorities: String?
  let pins: [String]
  let username: String?
  let passwordFile: String?
  let version: Broker.Version
  let replacesEventStream: Bool

  init(_ reader: inout TableReader) throws(TableReader.TableError) {
    let address = try reader.text("broker")
    guard let (host, port) = BrokerAddress.parse(address) else {
      throw reader.refusal("broker", "is \"\(address)\"; it must be HOST or HOST:PORT")
    }
    (self.host, self.port) = (host, port)
    authorities = try reader.optionalText("authorities")
    pins = reader.has("pins") ? try reader.texts("pins") : []
    try reader.checkRenamed("user", to: "username")
    username = try reader.optionalText("username")
    passwordFile = try reader.optionalText("password_file")
    guard (username == nil) == (passwordFile == nil) else {
      throw reader.refusal("username", "and \"password_file\" belong together")
    }
    version = try reader.choice("version", of: Version.self, default: .v5) == .v5 ? .v5 : .v311
    replacesEventStream = try reader.flag("replaces_event_stream", default: false)
    try reader.finish()
  }

  /// The first line of the password file.
  func credentials() throws(CommandError) -> Broker.Credentials? {
    guard let username, let passwordFile else { return nil }
    var bytes = try fileContents(passwordFile)
    defer { cleanse(&bytes) }
    let line = bytes.prefix { $0 != UInt8(ascii: "\n") }
    guard !line.isEmpty else { throw CommandError(.badData, "\(passwordFile) has no password in its first line") }
    return Broker.Credentials(user: username, password: SecretBytes(copying: line))
  }
}
