// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import ReferenceProtocol

/// The operator's settings after validation: every value of this type can be used without further checks.
package struct ServerConfiguration: Sendable, Equatable {
  package init() {}

  package var listen = "127.0.0.1"
  package var port = 8443
  /// `https://HOST[:PORT]`; nil: the address and port that the server listens on.
  package var issuer: String?
  package var accessLog = false
  package var certificateFile = "server.pem"
  package var privateKeyFile = "server.key"
  package var mobileAuthentication = MobileAuthentication()
  package var callbacks: [Callback] = []
  /// Loopback, link-local and private addresses that callbacks may use.
  package var callbackPrivateAddresses: [AddressRange] = []
  /// Load balancers whose connections begin with a header of the PROXY protocol, version 2.
  package var proxyProtocolFrom: [AddressRange] = []
  package var application = Application()
  package var types: [MobileAuthenticationType] = []
  package var authenticators: [Authenticator] = []
  package var limits = Limits()
  /// Nil: devices receive hints over HTTPS only.
  package var mqtt: MQTT?
  /// Nil: no health checks and no metrics.
  package var operations: Operations?
  /// Nil: the database is a file in the server's directory.
  package var database: Database?

  /// A PostgreSQL database, which several servers may share.
  package struct Database: Sendable, Equatable {
    /// `postgresql://…`; may contain a password.
    package var url: String
    /// The maximum number of concurrent transactions of one server.
    package var connections = 8

    package init(url: String) { self.url = url }
  }

  /// The address for health checks and metrics, over HTTP without TLS.
  package struct Operations: Sendable, Equatable {
    package var listen = "127.0.0.1"
    package var port = 9464
    /// See `ServerConfiguration.drainSeconds`; nil for the default.
    package var drainSeconds: Int?

    package init() {}
  }

  package struct MobileAuthentication: Sendable, Equatable {
    package var enabled = true
    package var enrollment = true
    package var pushEnrollmentMode = PushEnrollmentMode.multiple
    /// Whether the server has one OpenPGP key per enrollment instead of one for all.
    package var uniqueServerKeys = false
    /// The maximum length of the portal's `message`, in Unicode scalars.
    package var maxMessageLength = 155
    /// Whether `callback_uri` must be one of `callbacks`.
    package var callbackAllowList = false
    /// The platform name that portals receive, for portals that know only two platforms.
    package var portalPlatformAlias = "linux"
    package var resultRetentionHours = 24
    package var minimumSoftwareVersion = "0.0.0"
    /// How long requests for a user are on hold after "not me", in seconds; 0 disables the hold.
    package var notMeHoldSeconds = 300

    package init(
      enabled: Bool = true, enrollment: Bool = true,
      pushEnrollmentMode: PushEnrollmentMode = PushEnrollmentMode.multiple, uniqueServerKeys: Bool = false,
      maxMessageLength: Int = 155, callbackAllowList: Bool = false, portalPlatformAlias: String = "linux",
      resultRetentionHours: Int = 24, minimumSoftwareVersion: String = "0.0.0", notMeHoldSeconds: Int = 300
    ) {
      self.enabled = enabled
      self.enrollment = enrollment
      self.pushEnrollmentMode = pushEnrollmentMode
      self.uniqueServerKeys = uniqueServerKeys
      self.maxMessageLength = maxMessageLength
      self.callbackAllowList = callbackAllowList
      self.portalPlatformAlias = portalPlatformAlias
      self.resultRetentionHours = resultRetentionHours
      self.minimumSoftwareVersion = minimumSoftwareVersion
      self.notMeHoldSeconds = notMeHoldSeconds
    }
  }

  /// How many devices of one user may be enrolled for push.
  package enum PushEnrollmentMode: String, Sendable, Decodable {
    /// One device; the enrollment of a second one is refused.
    case single
    /// One device; the enrollment of a second one replaces the first.
    case override
    case multiple
  }

  package struct Callback: Sendable, Equatable {
    package var url: String
    package var username: String?
    package var password: String?

    package init(url: String, username: String? = nil, password: String? = nil) {
      self.url = url
      self.username = username
      self.password = password
    }

    /// The value of the `Authorization` header (RFC 7617), if credentials are configured.
    package var authorization: String? {
      guard let username, let password else { return nil }
      return "Basic \(Array("\(username):\(password)".utf8).base64)"
    }
  }

  /// An MQTT broker for hints to devices that subscribe to them.
  package struct MQTT: Sendable, Equatable {
    package var host: String
    package var port: UInt16
    /// A PEM file; nil for the system's authorities.
    package var authorityFile: String?
    package var username: String?
    package var password: String?
    /// Every topic is `PREFIX/` and 32 hex digits.
    package var topicPrefix = "approval-token"

    package init(
      host: String, port: UInt16, authorityFile: String? = nil, username: String? = nil, password: String? = nil,
      topicPrefix: String = "approval-token"
    ) {
      self.host = host
      self.port = port
      self.authorityFile = authorityFile
      self.username = username
      self.password = password
      self.topicPrefix = topicPrefix
    }
  }

  package struct Application: Sendable, Equatable {
    package var id = "approval-token"
    package var name = "Approval Token"
    /// Whether the activation of a profile includes choosing a PIN.
    package var pin = false
    /// The number of wrong PINs after which the user is deregistered.
    package var maxPINAttempts = 3
    /// The number of digits of a PIN.
    package var pinLength = 5
    /// The maximum number of equal digits in a row; nil for no limit.
    package var maxPINRepeats: Int?
    package var pinSequencesAllowed = false
    package var pinBlockList: [String] = []
    /// Whether biometric authenticators can be registered and used.
    package var biometric = false
    /// Whether custom authenticators can be registered and used.
    package var customAuthenticators = false

    package init(
      id: String = "approval-token", name: String = "Approval Token", pin: Bool = false, maxPINAttempts: Int = 3,
      pinLength: Int = 5, maxPINRepeats: Int? = nil, pinSequencesAllowed: Bool = false, pinBlockList: [String] = [],
      biometric: Bool = false, customAuthenticators: Bool = false
    ) {
      self.biometric = biometric
      self.customAuthenticators = customAuthenticators
      self.id = id
      self.name = name
      self.pin = pin
      self.maxPINAttempts = maxPINAttempts
      self.pinLength = pinLength
      self.maxPINRepeats = maxPINRepeats
      self.pinSequencesAllowed = pinSequencesAllowed
      self.pinBlockList = pinBlockList
    }

    /// The PIN policy for devices; nil if there is no PIN.
    package var pinPolicy: PINPolicyDescription? {
      guard pin else { return nil }
      return PINPolicyDescription(
        length: pinLength, maxRepeats: maxPINRepeats, sequencesAllowed: pinSequencesAllowed, blockList: pinBlockList,
        maxFailureCount: maxPINAttempts)
    }
  }

  package struct Limits: Sendable, Equatable {
    /// The sustained rate; the burst is twice as large.
    package var deviceRequestsPerSecond = 200
    /// The maximum number of open requests of one user on one device; further requests are refused until some have
    /// ended.
    package var openRequestsPerDevice = 100
    package var devicesPerFleetToken = 100_000
    /// The maximum number of concurrent connections, including event streams.
    package var connections = 20_000
    /// The maximum per source address, without authenticated event streams. IPv6: per /64, and eight times as many per
    /// /48.
    package var connectionsPerSource = 256
    /// From accept, or from the first byte of a later request, to the end of the response; not for event streams.
    package var requestSeconds = 30
    /// From the end of a response to the next request.
    package var idleSeconds = 60
    /// The same for the last connection of each device. Devices ask for their list at least every 10 minutes.
    package var deviceIdleSeconds = 900

    package init(
      deviceRequestsPerSecond: Int = 200, openRequestsPerDevice: Int = 100, devicesPerFleetToken: Int = 100_000,
      connections: Int = 20_000, connectionsPerSource: Int = 256, requestSeconds: Int = 30, idleSeconds: Int = 60,
      deviceIdleSeconds: Int = 900
    ) {
      self.deviceRequestsPerSecond = deviceRequestsPerSecond
      self.openRequestsPerDevice = openRequestsPerDevice
      self.devicesPerFleetToken = devicesPerFleetToken
      self.connections = connections
      self.connectionsPerSource = connectionsPerSource
      self.requestSeconds = requestSeconds
      self.idleSeconds = idleSeconds
      self.deviceIdleSeconds = deviceIdleSeconds
    }
  }

  /// A mobile authentication type, which portals name in `type`.
  package struct MobileAuthenticationType: Sendable, Equatable {
    package var name: String
    package var method = ApprovalRequest.Method.push
    /// How long a request is open, in seconds.
    package var requestExpiresIn = 60
    /// Default messages by language ("en", "nl").
    package var messages: [String: String] = [:]
    package var callbackOnExpiry = false
    /// Whether a newer request of this type replaces the user's older ones.
    package var supersede = false
    /// Whether the transaction fails immediately if the device is not connected.
    package var deliveryRequired = false
    /// The identifier of the authenticator; set if the method needs one.
    package var authenticator: String?
    /// The identifiers of other authenticators that can be used instead, in the order of preference.
    package var alternatives: [String] = []
    /// Whether the PIN can be used instead of the authenticator.
    package var fallsBackToPIN = false
    /// Whether the device must have a display.
    package var requiresDisplay = false
    /// Whether the user types digits that the portal names, such as the amount, to approve a request.
    package var readsBack = false

    package init(
      name: String, method: ApprovalRequest.Method = ApprovalRequest.Method.push, requestExpiresIn: Int = 60,
      messages: [String: String] = [:], callbackOnExpiry: Bool = false, supersede: Bool = false,
      deliveryRequired: Bool = false
    ) {
      self.name = name
      self.method = method
      self.requestExpiresIn = requestExpiresIn
      self.messages = messages
      self.callbackOnExpiry = callbackOnExpiry
      self.supersede = supersede
      self.deliveryRequired = deliveryRequired
    }
  }

  /// From SIGTERM until the server ends, in seconds: the time in which a load balancer notices that it is not ready,
  /// and the streams of devices end. By default a single server ends at once.
  package var drainSeconds: Int { operations.map { $0.drainSeconds ?? (database == nil ? 0 : 10) } ?? 0 }

  package func type(named name: String) -> MobileAuthenticationType? { types.first { $0.name == name } }
}
