// SPDX-License-Identifier: Apache-2.0
package import HTTP
package import Secrets

/// An MQTT broker, with the credentials of this client. TLS is always used.
package struct Broker: Sendable {
  package enum Version: Sendable {
    /// MQTT 3.1.1. It has no maximum packet size: if a broker forwards megabytes, the client must hold them.
    case v311
    /// MQTT 5. The client announces a maximum packet size; if a broker ignores it, libmosquitto does not enforce it.
    case v5
  }

  package struct Credentials: Sendable {
    package var user: String
    /// libmosquitto keeps a copy in ordinary memory for the duration of a connection. The password must therefore give
    /// access only to the broker.
    package var password: SecretBytes

    package init(user: String, password: SecretBytes) {
      self.user = user
      self.password = password
    }
  }

  package var host: String
  package var port: UInt16
  package var trust: ServerTrust
  package var credentials: Credentials?
  package var version: Version

  /// - Parameters:
  ///   - host: a name or an address. The broker's certificate must be valid for it.
  ///   - port: 8883 is the registered port of MQTT over TLS.
  package init(
    host: String, port: UInt16 = 8883, trust: ServerTrust, credentials: Credentials? = nil, version: Version = .v5
  ) {
    self.host = host
    self.port = port
    self.trust = trust
    self.credentials = credentials
    self.version = version
  }
}
