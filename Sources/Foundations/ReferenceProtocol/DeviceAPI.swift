// SPDX-License-Identifier: Apache-2.0

// The bodies of the device API, base `/device/v1`. Times are `*_ms`; lifetimes are relative, so no clocks are compared.

/// `GET /configuration` and part of `POST /validations`.
public struct DeviceConfiguration: Codable, Sendable, Equatable {
  /// How a device receives hints about new requests.
  public enum Transport: String, Codable, Sendable {
    case sse, longpoll
    /// An MQTT broker, in addition to or instead of the other transports.
    case mqtt
  }

  public var transports: [Transport]
  public var openPGPProfiles: [String]
  public var minimumSoftwareVersion: String
  /// Whether activating a profile includes choosing a PIN.
  public var pinRequired: Bool
  /// The rules for a PIN; set if `pinRequired`.
  public var pinPolicy: PINPolicyDescription?
  public var serverTimeMs: Int64
  /// The versions of the device protocol that the server supports; nil stands for `ProtocolVersions.unannounced`.
  public var protocolVersions: ProtocolVersions?
  /// Whether profiles can have authenticators besides the PIN (`AuthenticatorList`); nil for an earlier server.
  public var authenticators: Bool?

  enum CodingKeys: String, CodingKey {
    case transports, authenticators
    case openPGPProfiles = "openpgp_profiles"
    case minimumSoftwareVersion = "minimum_software_version"
    case pinRequired = "pin_required"
    case pinPolicy = "pin_policy"
    case serverTimeMs = "server_time_ms"
    case protocolVersions = "protocol_versions"
  }

  public init(
    transports: [Transport], openPGPProfiles: [String], minimumSoftwareVersion: String,
    pinPolicy: PINPolicyDescription?, serverTimeMs: Int64, protocolVersions: ProtocolVersions? = .supported
  ) {
    self.transports = transports
    self.openPGPProfiles = openPGPProfiles
    self.minimumSoftwareVersion = minimumSoftwareVersion
    pinRequired = pinPolicy != nil
    self.pinPolicy = pinPolicy
    self.serverTimeMs = serverTimeMs
    self.protocolVersions = protocolVersions
    authenticators = true
  }
}

/// `POST /validations`, the first call of every start.
public struct ValidationRequest: Codable, Sendable, Equatable {
  public var softwareVersion: String
  public var osVersion: String
  public var profiles: [String]
  /// The device's capabilities, as in the registration, which can be made on another computer; nil keeps the server's
  /// value.
  public var approvalCapabilities: ApprovalCapabilities?

  enum CodingKeys: String, CodingKey {
    case softwareVersion = "software_version"
    case osVersion = "os_version"
    case profiles
    case approvalCapabilities = "approval_capabilities"
  }

  public init(
    softwareVersion: String, osVersion: String, profiles: [String], approvalCapabilities: ApprovalCapabilities? = nil
  ) {
    self.softwareVersion = softwareVersion
    self.osVersion = osVersion
    self.profiles = profiles
    self.approvalCapabilities = approvalCapabilities
  }
}

public struct ValidationResponse: Codable, Sendable, Equatable {
  public var configuration: DeviceConfiguration
  /// Requested profiles that no longer exist on the server; the device wipes them.
  public var removedProfiles: [String]
  /// Requested profiles that lost their keys or push enrollment (9020); the device deletes their
  /// keys. A device that knows `layers` uses these instead.
  public var disenrolledProfiles: [String]
  /// Counts of wrong PINs of the requested profiles that have a PIN.
  public var failureCounts: [ProfileFailureCounts]?
  /// The layers of the requested profiles that exist; nil from an earlier server.
  public var layers: [ProfileLayers]?
  /// `RevocationNotice`s of the removed and disenrolled profiles whose keys the server still has.
  public var revocations: [String]?

  enum CodingKeys: String, CodingKey {
    case configuration, revocations, layers
    case removedProfiles = "removed_profiles"
    case disenrolledProfiles = "disenrolled_profiles"
    case failureCounts = "failure_counts"
  }

  public init(
    configuration: DeviceConfiguration, removedProfiles: [String], disenrolledProfiles: [String],
    failureCounts: [ProfileFailureCounts]? = nil, layers: [ProfileLayers]? = nil
  ) {
    self.configuration = configuration
    self.removedProfiles = removedProfiles
    self.disenrolledProfiles = disenrolledProfiles
    self.failureCounts = failureCounts
    self.layers = layers
  }
}

/// The layers of enrollment that the server has of a profile. Each can be lost and regained alone: keys with the PIN
/// (`PUT …/mobile-auth`), push with the keys (`PUT …/push`), both as the user.
public struct ProfileLayers: Codable, Sendable, Equatable {
  public var profileID: String
  /// Whether the profile has a PIN.
  public var pin: Bool
  /// Whether the keys are exchanged and acknowledged.
  public var mobileAuth: Bool
  public var push: Bool

  enum CodingKeys: String, CodingKey {
    case profileID = "profile_id"
    case pin
    case mobileAuth = "mobile_auth"
    case push
  }

  public init(profileID: String, pin: Bool, mobileAuth: Bool, push: Bool) {
    self.profileID = profileID
    self.pin = pin
    self.mobileAuth = mobileAuth
    self.push = push
  }
}

/// `PUT /profiles/{pid}/mobile-auth`. Idempotent for the same certificate.
public struct KeyExchangeRequest: Codable, Sendable, Equatable {
  /// Base64 of the binary OpenPGP certificate.
  public var openPGPCertificate: String

  enum CodingKeys: String, CodingKey { case openPGPCertificate = "openpgp_certificate" }

  public init(openPGPCertificate: String) { self.openPGPCertificate = openPGPCertificate }
}

public struct KeyExchangeResponse: Codable, Sendable, Equatable {
  public var serverCertificate: String
  public var serverFingerprint: String
  public var keyID: String

  enum CodingKeys: String, CodingKey {
    case serverCertificate = "server_certificate"
    case serverFingerprint = "server_fingerprint"
    case keyID = "key_id"
  }

  public init(serverCertificate: String, serverFingerprint: String, keyID: String) {
    self.serverCertificate = serverCertificate
    self.serverFingerprint = serverFingerprint
    self.keyID = keyID
  }
}

/// `POST /profiles/{pid}/mobile-auth/ack`: proves that the device can sign and that it has the server's key.
public struct KeyAcknowledgement: Codable, Sendable, Equatable {
  /// Base64 OpenPGP message, signed by the device and encrypted to the server, whose content is
  /// `KeyAcknowledgementContent`.
  public var proof: String

  public init(proof: String) { self.proof = proof }
}

public struct KeyAcknowledgementContent: Codable, Sendable, Equatable {
  public var clientID: String
  public var profileID: String
  public var keyID: String

  enum CodingKeys: String, CodingKey {
    case clientID = "client_id"
    case profileID = "profile_id"
    case keyID = "key_id"
  }

  public init(clientID: String, profileID: String, keyID: String) {
    self.clientID = clientID
    self.profileID = profileID
    self.keyID = keyID
  }
}

/// `PUT /profiles/{pid}/push`. A device may change the transport of an enrolled profile without a user access token.
public struct PushEnrollmentRequest: Codable, Sendable, Equatable {
  public var transport: DeviceConfiguration.Transport

  public init(transport: DeviceConfiguration.Transport) { self.transport = transport }
}

public struct PushEnrollmentResponse: Codable, Sendable, Equatable {
  public var pushToken: String
  /// For the transport `mqtt`: the MQTT topic to which `DeviceEvent`s of this device are published, reduced to their
  /// kind. The name contains 128 random bits.
  public var mailbox: String?

  enum CodingKeys: String, CodingKey {
    case pushToken = "push_token"
    case mailbox
  }

  public init(pushToken: String, mailbox: String? = nil) {
    self.pushToken = pushToken
    self.mailbox = mailbox
  }
}
