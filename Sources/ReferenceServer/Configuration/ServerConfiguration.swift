import Cryptography
import ReferenceProtocol

/// What the administrator decided, checked: a value of this type has no setting the server cannot follow.
struct ServerConfiguration: Sendable, Equatable {
  var listen = "127.0.0.1"
  var port = 8443
  /// `https://HOST[:PORT]`; nil means the address and port the server really listens on.
  var issuer: String?
  var accessLog = false
  var certificateFile = "server.pem"
  var privateKeyFile = "server.key"
  var mobileAuthentication = MobileAuthentication()
  var callbacks: [Callback] = []
  /// Loopback, link-local and private addresses that callbacks may go to.
  var callbackPrivateAddresses: [AddressRange] = []
  var application = Application()
  var types: [MobileAuthenticationType] = []
  var limits = Limits()
  /// Nil: devices hear of news over HTTPS alone.
  var mqtt: MQTT?

  struct MobileAuthentication: Sendable, Equatable {
    var enabled = true
    var enrolment = true
    var pushEnrolmentMode = PushEnrolmentMode.multiple
    /// One server OpenPGP key per enrolment instead of one for all.
    var uniqueServerKeys = false
    /// Unicode scalars of the portal's `message`.
    var maxMessageLength = 155
    /// Whether `callback_uri` must be one of `callbacks`.
    var callbackAllowList = false
    /// What portals are told instead of our platform name, for those that only know two.
    var portalPlatformAlias = "linux"
    var resultRetentionHours = 24
    var minimumSoftwareVersion = "0.0.0"
    /// Seconds for which portals are asked to wait after a user said "not me"; 0 for not at all.
    var notMeHoldSeconds = 300
  }

  /// How many devices of one user may be enrolled for push.
  enum PushEnrolmentMode: String, Sendable, Decodable {
    /// One; a second one is refused.
    case single
    /// One; a second one takes over.
    case override
    case multiple
  }

  struct Callback: Sendable, Equatable {
    var url: String
    var username: String?
    var password: String?

    /// Value of the `Authorization` header (RFC 7617), when credentials are configured.
    var authorization: String? {
      guard let username, let password else { return nil }
      return "Basic \(Array("\(username):\(password)".utf8).base64)"
    }
  }

  /// A broker for hints to devices that want them there.
  struct MQTT: Sendable, Equatable {
    var host: String
    var port: UInt16
    /// A PEM file; nil for the system's authorities.
    var authorityFile: String?
    var username: String?
    var password: String?
    /// Every mailbox is `PREFIX/` and 32 hex digits.
    var topicPrefix = "approval-token"
  }

  struct Application: Sendable, Equatable {
    var id = "approval-token"
    var name = "Approval Token"
    /// Whether activating a profile includes choosing a PIN.
    var pin = false
    /// Wrong PINs after which the user is deregistered.
    var maxPINAttempts = 3
    /// Digits.
    var pinLength = 5
    /// The longest run of one digit; nil for any.
    var maxPINRepeats: Int?
    var pinSequencesAllowed = false
    var pinBlockList: [String] = []

    /// What devices are told; nil if there is no PIN.
    var pinPolicy: PINPolicyDescription? {
      guard pin else { return nil }
      return PINPolicyDescription(
        length: pinLength, maxRepeats: maxPINRepeats, sequencesAllowed: pinSequencesAllowed, blockList: pinBlockList,
        maxFailureCount: maxPINAttempts)
    }
  }

  struct Limits: Sendable, Equatable {
    /// Sustained; twice as many may come at once.
    var deviceRequestsPerSecond = 200
    /// Open requests of one user on one device; a portal that wants more is refused until some have ended.
    var openRequestsPerDevice = 100
    var devicesPerFleetToken = 100_000
    /// Connections at the same time, event streams among them.
    var connections = 20_000
    /// Of one address (IPv6: of one /64), without authenticated event streams.
    var connectionsPerSource = 256
    /// From accept, or from the first byte of a later request, to the end of the response; but not event streams.
    var requestSeconds = 30
    /// From the end of a response to the next request.
    var idleSeconds = 60
  }

  /// A mobile authentication type: what portals name in `type`.
  struct MobileAuthenticationType: Sendable, Equatable {
    var name: String
    var method = ApprovalRequest.Method.push
    /// Seconds.
    var requestExpiresIn = 60
    /// Default messages by language ("en", "nl").
    var messages: [String: String] = [:]
    var callbackOnExpiry = false
    /// Whether a newer request of this type replaces the user's older ones.
    var supersede = false
    /// Whether a device that is not connected right now makes the transaction fail at once.
    var deliveryRequired = false
  }

  func type(named name: String) -> MobileAuthenticationType? { types.first { $0.name == name } }
}
