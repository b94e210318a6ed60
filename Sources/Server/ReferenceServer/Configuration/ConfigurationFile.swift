// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import TOMLSyntax

// The fuzzer compiles this file in one module with the core's parsers.
#if canImport(TokenServerCore)
  import TokenServerCore
#endif

/// The contents of `config.toml`. Unknown keys are errors, so that a misspelled setting does not silently keep its
/// default.
struct ConfigurationFile {
  struct ConfigurationError: Error, Equatable, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = "configuration: " + description }
  }

  fileprivate typealias TableError = TableReader.TableError

  var listen: String?
  var port: Int?
  var issuer: String?
  var accessLog: Bool?
  var tls: TLS?
  var mobileAuthentication: MobileAuthentication?
  var limits: Limits?
  var application: Application?
  var mqtt: MQTT?
  var operations: Operations?
  var database: Database?
  var callbackPrivateAddresses: [String]?
  var proxyProtocolFrom: [String]?
  var callback: [Callback]?
  var type: [TypeEntry]?
  var authenticator: [AuthenticatorTable]?

  private init(_ reader: inout TableReader) throws(TableError) {
    listen = try reader.optionalText("listen")
    port = try reader.optionalNumber("port")
    issuer = try reader.optionalText("issuer")
    accessLog = try reader.optionalFlag("access_log")
    tls = try reader.optionalTable("tls", TLS.init)
    mobileAuthentication = try reader.optionalTable("mobile_authentication", MobileAuthentication.init)
    limits = try reader.optionalTable("limits", Limits.init)
    application = try reader.optionalTable("application", Application.init)
    mqtt = try reader.optionalTable("mqtt", MQTT.init)
    operations = try reader.optionalTable("operations", Operations.init)
    database = try reader.optionalTable("database", Database.init)
    callbackPrivateAddresses = try reader.optionalTexts("callback_private_addresses")
    proxyProtocolFrom = try reader.optionalTexts("proxy_protocol_from")
    callback = try reader.optionalTables("callback", Callback.init)
    type = try reader.optionalTables("type", TypeEntry.init)
    authenticator = try reader.optionalTables("authenticator", AuthenticatorTable.init)
    try reader.finish()
  }

  struct TLS {
    var certificate: String?
    var key: String?

    fileprivate init(_ reader: inout TableReader) throws(TableError) {
      certificate = try reader.optionalText("certificate")
      key = try reader.optionalText("key")
    }
  }

  struct MobileAuthentication {
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

    fileprivate init(_ reader: inout TableReader) throws(TableError) {
      try reader.checkRenamed("enrolment", to: "enrollment")
      try reader.checkRenamed("push_enrolment_mode", to: "push_enrollment_mode")
      enabled = try reader.optionalFlag("enabled")
      enrollment = try reader.optionalFlag("enrollment")
      pushEnrollmentMode = try reader.optionalText("push_enrollment_mode")
      uniqueServerKeys = try reader.optionalFlag("unique_server_keys")
      maxMessageLength = try reader.optionalNumber("max_message_length")
      callbackAllowList = try reader.optionalFlag("callback_allow_list")
      portalPlatformAlias = try reader.optionalText("portal_platform_alias")
      resultRetentionHours = try reader.optionalNumber("result_retention_hours")
      minimumSoftwareVersion = try reader.optionalText("minimum_software_version")
      notMeHoldSeconds = try reader.optionalNumber("not_me_hold_seconds")
    }
  }

  struct Limits {
    var deviceRequestsPerSecond: Int?
    var openRequestsPerDevice: Int?
    var devicesPerFleetToken: Int?
    var connections: Int?
    var connectionsPerSource: Int?
    var requestSeconds: Int?
    var idleSeconds: Int?
    var deviceIdleSeconds: Int?

    fileprivate init(_ reader: inout TableReader) throws(TableError) {
      deviceRequestsPerSecond = try reader.optionalNumber("device_requests_per_second")
      openRequestsPerDevice = try reader.optionalNumber("open_requests_per_device")
      devicesPerFleetToken = try reader.optionalNumber("devices_per_fleet_token")
      connections = try reader.optionalNumber("connections")
      connectionsPerSource = try reader.optionalNumber("connections_per_source")
      requestSeconds = try reader.optionalNumber("request_seconds")
      idleSeconds = try reader.optionalNumber("idle_seconds")
      deviceIdleSeconds = try reader.optionalNumber("device_idle_seconds")
    }
  }

  struct Application {
    var id: String?
    var name: String?
    var pin: Bool?
    var maxPINAttempts: Int?
    var pinPolicy: PINPolicy?
    var biometric: Bool?
    var customAuthenticators: Bool?

    fileprivate init(_ reader: inout TableReader) throws(TableError) {
      id = try reader.optionalText("id")
      name = try reader.optionalText("name")
      pin = try reader.optionalFlag("pin")
      maxPINAttempts = try reader.optionalNumber("max_pin_attempts")
      pinPolicy = try reader.optionalTable("pin_policy", PINPolicy.init)
      biometric = try reader.optionalFlag("biometric")
      customAuthenticators = try reader.optionalFlag("custom_authenticators")
    }
  }

  struct PINPolicy {
    var length: Int?
    var maxRepeats: Int?
    var sequencesAllowed: Bool?
    var blockList: [String]?

    fileprivate init(_ reader: inout TableReader) throws(TableError) {
      length = try reader.optionalNumber("length")
      maxRepeats = try reader.optionalNumber("max_repeats")
      sequencesAllowed = try reader.optionalFlag("sequences_allowed")
      blockList = try reader.optionalTexts("block_list")
    }
  }

  struct MQTT {
    var broker: String
    var authorities: String?
    var username: String?
    var password: String?
    var topicPrefix: String?

    fileprivate init(_ reader: inout TableReader) throws(TableError) {
      broker = try reader.text("broker")
      authorities = try reader.optionalText("authorities")
      username = try reader.optionalText("username")
      password = try reader.optionalText("password")
      topicPrefix = try reader.optionalText("topic_prefix")
    }
  }

  struct Operations {
    var listen: String?
    var port: Int?
    var drainSeconds: Int?

    fileprivate init(_ reader: inout TableReader) throws(TableError) {
      listen = try reader.optionalText("listen")
      port = try reader.optionalNumber("port")
      drainSeconds = try reader.optionalNumber("drain_seconds")
    }
  }

  struct Database {
    var url: String
    var connections: Int?

    fileprivate init(_ reader: inout TableReader) throws(TableError) {
      url = try reader.text("url")
      connections = try reader.optionalNumber("connections")
    }
  }

  struct Callback {
    var url: String
    var username: String?
    var password: String?

    fileprivate init(_ reader: inout TableReader) throws(TableError) {
      url = try reader.text("url")
      username = try reader.optionalText("username")
      password = try reader.optionalText("password")
    }
  }

  struct TypeEntry {
    var name: String
    var method: String
    var requestExpiresIn: Int?
    var messages: [String: String]?
    var callbackOnExpiry: Bool?
    var supersede: Bool?
    var deliveryRequired: Bool?
    var authenticator: String?
    var alternatives: [String]?
    var fallback: String?
    var requiresDisplay: Bool?
    var readBack: String?

    fileprivate init(_ reader: inout TableReader) throws(TableError) {
      name = try reader.text("name")
      method = try reader.text("method")
      requestExpiresIn = try reader.optionalNumber("request_expires_in")
      messages = try reader.optionalTextTable("messages")
      callbackOnExpiry = try reader.optionalFlag("callback_on_expiry")
      supersede = try reader.optionalFlag("supersede")
      deliveryRequired = try reader.optionalFlag("delivery_required")
      authenticator = try reader.optionalText("authenticator")
      alternatives = try reader.optionalTexts("alternatives")
      fallback = try reader.optionalText("fallback")
      requiresDisplay = try reader.optionalFlag("requires_display")
      readBack = try reader.optionalText("read_back")
    }
  }

  struct AuthenticatorTable {
    var id: String
    var name: String
    var kind: String
    var scripts: String?
    var signature: String?
    var timeLimitSeconds: Int?
    var maxFailures: Int?
    var user: String?

    fileprivate init(_ reader: inout TableReader) throws(TableError) {
      id = try reader.text("id")
      name = try reader.text("name")
      kind = try reader.text("kind")
      scripts = try reader.optionalText("scripts")
      signature = try reader.optionalText("signature")
      timeLimitSeconds = try reader.optionalNumber("time_limit_seconds")
      maxFailures = try reader.optionalNumber("max_failures")
      user = try reader.optionalText("user")
    }
  }

  static func parse(_ text: String) throws(ConfigurationError) -> ServerConfiguration {
    let table: [String: TOMLValue]
    do { table = try TOMLSyntax.parse(text) } catch { throw ConfigurationError("\(error)") }
    var reader = TableReader(table)
    let file: ConfigurationFile
    do { file = try ConfigurationFile(&reader) } catch { throw ConfigurationError(error.why) }
    return try file.checked()
  }
}
