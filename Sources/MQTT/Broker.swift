// SPDX-License-Identifier: Apache-2.0
public import Courier
public import Secrets

/// An MQTT broker, with the credentials of this client. TLS is always used.
public struct Broker: Sendable {
  public enum Version: Sendable {
    /// MQTT 3.1.1. It has no maximum packet size: if the broker forwards megabytes, the client must hold them.
    case v311
    case v5
  }

  public struct Credentials: Sendable {
    public var user: String
    /// libmosquitto keeps a copy in ordinary memory for the duration of a connection. The password must therefore give
    /// access only to the broker.
    public var password: SecretBytes

    public init(user: String, password: SecretBytes) {
      self.user = user
      self.password = password
    }
  }

  public var host: String
  public var port: UInt16
  public var trust: ServerTrust
  public var credentials: Credentials?
  public var version: Version

  /// - Parameters:
  ///   - host: a name or an address. The broker's certificate must be valid for it.
  ///   - port: 8883 is the registered port of MQTT over TLS.
  public init(
    host: String, port: UInt16 = 8883, trust: ServerTrust, credentials: Credentials? = nil, version: Version = .v5
  ) {
    self.host = host
    self.port = port
    self.trust = trust
    self.credentials = credentials
    self.version = version
  }
}
