// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol

/// The operator's settings after validation: every value of this type can be used without further checks.
struct ServerConfiguration: Sendable, Equatable {
  var listen = "127.0.0.1"
  var port = 8443
  /// `https://HOST[:PORT]`; nil: the address and port that the server listens on.
  var issuer: String?
  var accessLog = false
  var certificateFile = "server.pem"
  var privateKeyFile = "server.key"
  var mobileAuthentication = MobileAuthentication()
  var callbacks: [Callback] = []
  /// Loopback, link-local and private addresses that callbacks may use.
  var callbackPrivateAddresses: [AddressRange] = []
  var application = Application()
  var types: [MobileAuthenticationType] = []
  var limits = Limits()
  /// Nil: devices receive hints over HTTPS only.
  var mqtt: MQTT?

  struct MobileAuthentication: Sendable, Equatable {
    var enabled = true
    var enrollment = true
    var pushEnrollmentMode = PushEnrollmentMode.multiple
    /// Whether the server has one OpenPGP key per enrollment instead of one for all.
    var uniqueServerKeys = false
    /// The maximum length of the portal's `message`, in Unicode scalars.
    var maxMessageLength = 155
    /// Whether `callback_uri` must be one of `callbacks`.
    var callbackAllowList = false
    /// The platform name that portals receive, for portals that know only two platforms.
    var portalPlatformAlias = "linux"
    var resultRetentionHours = 24
    var minimumSoftwareVersion = "0.0.0"
    /// How long requests for a user are on hold after "not me", in seconds; 0 disables the hold.
    var notMeHoldSeconds = 300
  }

  /// How many devices of one user may be enrolled for push.
  enum PushEnrollmentMode: String, Sendable, Decodable {
    /// One device; the enrollment of a second one is refused.
    case single
    /// One device; the enrollment of a second one replaces the first.
    case override
    case multiple
  }

  struct Callback: Sendable, Equatable {
    var url: String
    var username: String?
    var password: String?

    /// The value of the `Authorization` header (RFC 7617), if credentials are configured.
    var authorization: String? {
      guard let username, let password else { return nil }
      return "Basic \(Array("\(username):\(password)".utf8).base64)"
    }
  }

  /// An MQTT broker for hints to devices that subscribe to them.
  struct MQTT: Sendable, Equatable {
    var host: String
    var port: UInt16
    /// A PEM file; nil for the system's authorities.
    var authorityFile: String?
    var username: String?
    var password: String?
    /// Every topic is `PREFIX/` and 32 hex digits.
    var topicPrefix = "approval-token"
  }

  struct Application: Sendable, Equatable {
    var id = "approval-token"
    var name = "Approval Token"
    /// Whether the activation of a profile includes choosing a PIN.
    var pin = false
    /// The number of wrong PINs after which the user is deregistered.
    var maxPINAttempts = 3
    /// The number of digits of a PIN.
    var pinLength = 5
    /// The maximum number of equal digits in a row; nil for no limit.
    var maxPINRepeats: Int?
    var pinSequencesAllowed = false
    var pinBlockList: [String] = []

    /// The PIN policy for devices; nil if there is no PIN.
    var pinPolicy: PINPolicyDescription? {
      guard pin else { return nil }
      return PINPolicyDescription(
        length: pinLength, maxRepeats: maxPINRepeats, sequencesAllowed: pinSequencesAllowed, blockList: pinBlockList,
        maxFailureCount: maxPINAttempts)
    }
  }

  struct Limits: Sendable, Equatable {
    /// The sustained rate; the burst is twice as large.
    var deviceRequestsPerSecond = 200
    /// The maximum number of open requests of one user on one device; further requests are refused until some have
    /// ended.
    var openRequestsPerDevice = 100
    var devicesPerFleetToken = 100_000
    /// The maximum number of concurrent connections, including event streams.
    var connections = 20_000
    /// The maximum per source address (IPv6: per /64), without authenticated event streams.
    var connectionsPerSource = 256
    /// From accept, or from the first byte of a later request, to the end of the response; not for event streams.
    var requestSeconds = 30
    /// From the end of a response to the next request.
    var idleSeconds = 60
  }

  /// A mobile authentication type, which portals name in `type`.
  struct MobileAuthenticationType: Sendable, Equatable {
    var name: String
    var method = ApprovalRequest.Method.push
    /// How long a request is open, in seconds.
    var requestExpiresIn = 60
    /// Default messages by language ("en", "nl").
    var messages: [String: String] = [:]
    var callbackOnExpiry = false
    /// Whether a newer request of this type replaces the user's older ones.
    var supersede = false
    /// Whether the transaction fails immediately if the device is not connected.
    var deliveryRequired = false
  }

  func type(named name: String) -> MobileAuthenticationType? { types.first { $0.name == name } }
}
