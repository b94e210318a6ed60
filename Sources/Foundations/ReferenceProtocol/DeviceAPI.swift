// SPDX-License-Identifier: Apache-2.0

// The bodies of the device API, base `/device/v1`. Times are `*_ms`; lifetimes are relative, so no clocks are compared.

/// `GET /configuration` and part of `POST /validations`.
package struct DeviceConfiguration: Codable, Sendable, Equatable {
  /// How a device receives hints about new requests.
  package enum Transport: String, Codable, Sendable {
    case sse, longpoll
    /// An MQTT broker, in addition to or instead of the other transports.
    case mqtt
  }

  package var transports: [Transport]
  package var openPGPProfiles: [String]
  package var minimumSoftwareVersion: String
  /// Whether activating a profile includes choosing a PIN.
  package var pinRequired: Bool
  /// The rules for a PIN; set if `pinRequired`.
  package var pinPolicy: PINPolicyDescription?
  package var serverTimeMs: Int64
  /// The versions of the device protocol that the server supports; nil stands for `ProtocolVersions.unannounced`.
  package var protocolVersions: ProtocolVersions?
  /// Whether profiles can have authenticators besides the PIN (`AuthenticatorList`); nil for an earlier server.
  package var authenticators: Bool?

  enum CodingKeys: String, CodingKey {
    case transports, authenticators
    case openPGPProfiles = "openpgp_profiles"
    case minimumSoftwareVersion = "minimum_software_version"
    case pinRequired = "pin_required"
    case pinPolicy = "pin_policy"
    case serverTimeMs = "server_time_ms"
    case protocolVersions = "protocol_versions"
  }

  package init(
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
package struct ValidationRequest: Codable, Sendable, Equatable {
  package var softwareVersion: String
  package var osVersion: String
  package var profiles: [String]
  /// The device's capabilities, as in the registration, which can be made on another computer; nil keeps the server's
  /// value.
  package var approvalCapabilities: ApprovalCapabilities?

  enum CodingKeys: String, CodingKey {
    case softwareVersion = "software_version"
    case osVersion = "os_version"
    case profiles
    case approvalCapabilities = "approval_capabilities"
  }

  package init(
    softwareVersion: String, osVersion: String, profiles: [String], approvalCapabilities: ApprovalCapabilities? = nil
  ) {
    self.softwareVersion = softwareVersion
    self.osVersion = osVersion
    self.profiles = profiles
    self.approvalCapabilities = approvalCapabilities
  }
}

package struct ValidationResponse: Codable, Sendable, Equatable {
  package var configuration: DeviceConfiguration
  /// Requested profiles that no longer exist on the server; the device wipes them.
  package var removedProfiles: [String]
  /// Requested profiles that lost their keys or push enrollment (9020); the device deletes their
  /// keys. A device that knows `layers` uses these instead.
  package var disenrolledProfiles: [String]
  /// Counts of wrong PINs of the requested profiles that have a PIN.
  package var failureCounts: [ProfileFailureCounts]?
  /// The layers of the requested profiles that exist; nil from an earlier server.
  package var layers: [ProfileLayers]?
  /// `RevocationNotice`s of the removed and disenrolled profiles whose keys the server still has.
  package var revocations: [String]?

  enum CodingKeys: String, CodingKey {
    case configuration, revocations, layers
    case removedProfiles = "removed_profiles"
    case disenrolledProfiles = "disenrolled_profiles"
    case failureCounts = "failure_counts"
  }

  package init(
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
package struct ProfileLayers: Codable, Sendable, Equatable {
  package var profileID: String
  /// Whether the profile has a PIN.
  package var pin: Bool
  /// Whether the keys are exchanged and acknowledged.
  package var mobileAuth: Bool
  package var push: Bool

  enum CodingKeys: String, CodingKey {
    case profileID = "profile_id"
    case pin
    case mobileAuth = "mobile_auth"
    case push
  }

  package init(profileID: String, pin: Bool, mobileAuth: Bool, push: Bool) {
    self.profileID = profileID
    self.pin = pin
    self.mobileAuth = mobileAuth
    self.push = push
  }
}

/// `PUT /profiles/{pid}/mobile-auth`. Idempotent for the same certificate.
package struct KeyExchangeRequest: Codable, Sendable, Equatable {
  /// Base64 of the binary OpenPGP certificate, which has no expiry.
  package var openPGPCertificate: String

  enum CodingKeys: String, CodingKey { case openPGPCertificate = "openpgp_certificate" }

  package init(openPGPCertificate: String) { self.openPGPCertificate = openPGPCertificate }
}

package struct KeyExchangeResponse: Codable, Sendable, Equatable {
  package var serverCertificate: String
  package var serverFingerprint: String
  package var keyID: String

  enum CodingKeys: String, CodingKey {
    case serverCertificate = "server_certificate"
    case serverFingerprint = "server_fingerprint"
    case keyID = "key_id"
  }

  package init(serverCertificate: String, serverFingerprint: String, keyID: String) {
    self.serverCertificate = serverCertificate
    self.serverFingerprint = serverFingerprint
    self.keyID = keyID
  }
}

/// `POST /profiles/{pid}/mobile-auth/ack`: proves that the device can sign and that it has the server's key.
package struct KeyAcknowledgement: Codable, Sendable, Equatable {
  /// Base64 OpenPGP message, signed by the device and encrypted to the server, whose content is
  /// `KeyAcknowledgementContent`.
  package var proof: String

  package init(proof: String) { self.proof = proof }
}

package struct KeyAcknowledgementContent: Codable, Sendable, Equatable {
  package var clientID: String
  package var profileID: String
  package var keyID: String

  enum CodingKeys: String, CodingKey {
    case clientID = "client_id"
    case profileID = "profile_id"
    case keyID = "key_id"
  }

  package init(clientID: String, profileID: String, keyID: String) {
    self.clientID = clientID
    self.profileID = profileID
    self.keyID = keyID
  }
}

/// `PUT /profiles/{pid}/push`. A device may change the transport of an enrolled profile without a user access token.
package struct PushEnrollmentRequest: Codable, Sendable, Equatable {
  package var transport: DeviceConfiguration.Transport

  package init(transport: DeviceConfiguration.Transport) { self.transport = transport }
}

package struct PushEnrollmentResponse: Codable, Sendable, Equatable {
  package var pushToken: String
  /// For the transport `mqtt`: the MQTT topic to which `DeviceEvent`s of this device are published, reduced to their
  /// kind. The name contains 128 random bits.
  package var mailbox: String?

  enum CodingKeys: String, CodingKey {
    case pushToken = "push_token"
    case mailbox
  }

  package init(pushToken: String, mailbox: String? = nil) {
    self.pushToken = pushToken
    self.mailbox = mailbox
  }
}
