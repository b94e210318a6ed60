public import Courier
public import Secrets

/// An MQTT broker, and who we are there. TLS always.
public struct Broker: Sendable {
  public enum Version: Sendable {
    /// It cannot be told how much a client takes: a broker that lets megabytes through makes the client hold them.
    case v311
    case v5
  }

  public struct Credentials: Sendable {
    public var user: String
    /// libmosquitto holds a copy in ordinary memory for as long as there is a connection: this must open nothing but the
    /// broker.
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
  ///   - host: a name or an address; the broker's certificate must be made out to it.
  ///   - port: 8883 is the one registered for MQTT over TLS.
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
