// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import TOMLKit
import TOMLSyntax

// The fuzzer compiles this file in one module with the core's parsers.
#if canImport(TokenServerCore)
  import TokenServerCore
#endif

/// The contents of `config.toml`. Unknown keys are errors, so that a misspelled setting does not silently keep its
/// default.
struct ConfigurationFile: Decodable {
  struct ConfigurationError: Error, Equatable, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = "configuration: " + description }
  }

  var listen: String?
  var port: Int?
  var issuer: String?
  var accessLog: Bool?
  var tls: TLS?
  var mobileAuthentication: MobileAuthentication?
  var limits: Limits?
  var application: Application?
  var mqtt: MQTT?
  var callbackPrivateAddresses: [String]?
  var callback: [Callback]?
  var type: [TypeEntry]?

  enum CodingKeys: String, CodingKey {
    case listen, port, issuer, tls, limits, application, mqtt, callback, type
    case accessLog = "access_log"
    case callbackPrivateAddresses = "callback_private_addresses"
    case mobileAuthentication = "mobile_authentication"
  }

  struct TLS: Decodable {
    var certificate: String?
    var key: String?
  }

  struct MobileAuthentication: Decodable {
    var enabled: Bool?
    var enrollment: Bool?
    var pushEnrollmentMode: String?
    var uniqueServerKeys: Bool?
    var maxMessageLength: Int?
    var callbackAllowList: Bool?
    var portalPlatformAlias: String?
    var resultRetentionHours: Int?
    var minimumSoftwareVersion: String?
    var notMeHoldSeconds: Int?

    enum CodingKeys: String, CodingKey {
      case enabled, enrollment
      case pushEnrollmentMode = "push_enrollment_mode"
      case uniqueServerKeys = "unique_server_keys"
      case maxMessageLength = "max_message_length"
      case callbackAllowList = "callback_allow_list"
      case portalPlatformAlias = "portal_platform_alias"
      case resultRetentionHours = "result_retention_hours"
      case minimumSoftwareVersion = "minimum_software_version"
      case notMeHoldSeconds = "not_me_hold_seconds"
    }
  }

  struct Limits: Decodable {
    var deviceRequestsPerSecond: Int?
    var openRequestsPerDevice: Int?
    var devicesPerFleetToken: Int?
    var connections: Int?
    var connectionsPerSource: Int?
    var requestSeconds: Int?
    var idleSeconds: Int?

    enum CodingKeys: String, CodingKey {
      case deviceRequestsPerSecond = "device_requests_per_second"
      case openRequestsPerDevice = "open_requests_per_device"
      case devicesPerFleetToken = "devices_per_fleet_token"
      case connections
      case connectionsPerSource = "connections_per_source"
      case requestSeconds = "request_seconds"
      case idleSeconds = "idle_seconds"
    }
  }

  struct Application: Decodable {
    var id: String?
    var name: String?
    var pin: Bool?
    var maxPINAttempts: Int?
    var pinPolicy: PINPolicy?

    enum CodingKeys: String, CodingKey {
      case id, name, pin
      case maxPINAttempts = "max_pin_attempts"
      case pinPolicy = "pin_policy"
    }
  }

  struct PINPolicy: Decodable {
    var length: Int?
    var maxRepeats: Int?
    var sequencesAllowed: Bool?
    var blockList: [String]?

    enum CodingKeys: String, CodingKey {
      case length
      case maxRepeats = "max_repeats"
      case sequencesAllowed = "sequences_allowed"
      case blockList = "block_list"
    }
  }

  struct MQTT: Decodable {
    var broker: String
    var authorities: String?
    var username: String?
    var password: String?
    var topicPrefix: String?

    enum CodingKeys: String, CodingKey {
      case broker, authorities, username, password
      case topicPrefix = "topic_prefix"
    }
  }

  struct Callback: Decodable {
    var url: String
    var username: String?
    var password: String?
  }

  struct TypeEntry: Decodable {
    var name: String
    var method: String
    var requestExpiresIn: Int?
    var messages: [String: String]?
    var callbackOnExpiry: Bool?
    var supersede: Bool?
    var deliveryRequired: Bool?

    enum CodingKeys: String, CodingKey {
      case name, method, messages, supersede
      case requestExpiresIn = "request_expires_in"
      case callbackOnExpiry = "callback_on_expiry"
      case deliveryRequired = "delivery_required"
    }
  }

  static func parse(_ text: String) throws(ConfigurationError) -> ServerConfiguration {
    let file: ConfigurationFile
    do {
      try TOMLSyntax.check(text)
      file = try TOMLDecoder(strictDecoding: true).decode(ConfigurationFile.self, from: text)
    } catch {
      throw ConfigurationError(explain(error))
    }
    return try file.checked()
  }

  /// Settings by their names of earlier versions.
  private static let formerNames = [
    "mobile_authentication.enrolment": "mobile_authentication.enrollment",
    "mobile_authentication.push_enrolment_mode": "mobile_authentication.push_enrollment_mode",
  ]

  private static func explain(_ error: any Error) -> String {
    switch error {
    case let error as UnexpectedKeysError:
      // The path of a nested key ends in the key itself.
      let names = error.keys.map { key, path in
        (path.last?.stringValue == key ? path.map(\.stringValue) : path.map(\.stringValue) + [key])
          .joined(separator: ".")
      }
      let explained = names.sorted().map { name in
        "\"\(name)\"" + (formerNames[name].map { ", which is now called \"\($0)\"" } ?? "")
      }
      return "unknown setting \(explained.joined(separator: "; "))"
    case let error as TOMLParseError: return "line \(error.source.begin.line): \(error.description)"
    case DecodingError.keyNotFound(let key, let context): return "\"\(path(context, key))\" is missing"
    case DecodingError.typeMismatch(let type, let context): return "\"\(path(context))\" is not a \(type)"
    case DecodingError.valueNotFound(_, let context): return "\"\(path(context))\" has no value"
    case DecodingError.dataCorrupted(let context): return "\"\(path(context))\": \(context.debugDescription)"
    default: return "\(error)"
    }
  }

  private static func path(_ context: DecodingError.Context, _ key: (any CodingKey)? = nil) -> String {
    (context.codingPath.map(\.stringValue) + (key.map { [$0.stringValue] } ?? [])).joined(separator: ".")
  }
}
