import ReferenceProtocol
import TOMLKit

/// `config.toml`, as written by a person. Unknown keys are errors, so that a misspelt setting is never silently the
/// default.
struct ConfigurationFile: Decodable {
  struct Refusal: Error, Equatable, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = "configuration: " + description }
  }

  private var listen: String?
  private var port: Int?
  private var issuer: String?
  private var accessLog: Bool?
  private var tls: TLS?
  private var mobileAuthentication: MobileAuthentication?
  private var limits: Limits?
  private var application: Application?
  private var callback: [Callback]?
  private var type: [TypeEntry]?

  private enum CodingKeys: String, CodingKey {
    case listen, port, issuer, tls, limits, application, callback, type
    case accessLog = "access_log"
    case mobileAuthentication = "mobile_authentication"
  }

  private struct TLS: Decodable {
    var certificate: String?
    var key: String?
  }

  private struct MobileAuthentication: Decodable {
    var enabled: Bool?
    var enrolment: Bool?
    var pushEnrolmentMode: String?
    var uniqueServerKeys: Bool?
    var maxMessageLength: Int?
    var callbackAllowList: Bool?
    var portalPlatformAlias: String?
    var resultRetentionHours: Int?
    var minimumSoftwareVersion: String?

    enum CodingKeys: String, CodingKey {
      case enabled, enrolment
      case pushEnrolmentMode = "push_enrolment_mode"
      case uniqueServerKeys = "unique_server_keys"
      case maxMessageLength = "max_message_length"
      case callbackAllowList = "callback_allow_list"
      case portalPlatformAlias = "portal_platform_alias"
      case resultRetentionHours = "result_retention_hours"
      case minimumSoftwareVersion = "minimum_software_version"
    }
  }

  private struct Limits: Decodable {
    var deviceRequestsPerSecond: Int?
    var openRequestsPerDevice: Int?

    enum CodingKeys: String, CodingKey {
      case deviceRequestsPerSecond = "device_requests_per_second"
      case openRequestsPerDevice = "open_requests_per_device"
    }
  }

  private struct Application: Decodable {
    var id: String?
    var name: String?
  }

  private struct Callback: Decodable {
    var url: String
    var username: String?
    var password: String?
  }

  private struct TypeEntry: Decodable {
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

  static func parse(_ text: String) throws(Refusal) -> ServerConfiguration {
    let file: ConfigurationFile
    do { file = try TOMLDecoder(strictDecoding: true).decode(ConfigurationFile.self, from: text) } catch {
      throw Refusal(explain(error))
    }
    return try file.checked()
  }

  private static func explain(_ error: any Error) -> String {
    switch error {
    case let error as UnexpectedKeysError:
      let names = error.keys.map { key, path in (path.map(\.stringValue) + [key]).joined(separator: ".") }
      return "unknown setting \(names.sorted().map { "\"\($0)\"" }.joined(separator: ", "))"
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

  private func checked() throws(Refusal) -> ServerConfiguration {
    var configuration = ServerConfiguration()
    configuration.listen = listen ?? configuration.listen
    configuration.port = try within(0...65535, port, "port") ?? configuration.port
    if let issuer {
      guard issuer.hasPrefix("https://"), !issuer.hasSuffix("/") else {
        throw Refusal("\"issuer\" must be https://HOST[:PORT] without a slash at the end, not \"\(issuer)\"")
      }
      configuration.issuer = issuer
    }
    configuration.accessLog = accessLog ?? false
    configuration.certificateFile = tls?.certificate ?? configuration.certificateFile
    configuration.privateKeyFile = tls?.key ?? configuration.privateKeyFile
    try check(mobileAuthentication, into: &configuration.mobileAuthentication)
    configuration.limits.deviceRequestsPerSecond =
      try within(1...100_000, limits?.deviceRequestsPerSecond, "limits.device_requests_per_second")
      ?? configuration.limits.deviceRequestsPerSecond
    configuration.limits.openRequestsPerDevice =
      try within(1...100_000, limits?.openRequestsPerDevice, "limits.open_requests_per_device")
      ?? configuration.limits.openRequestsPerDevice
    configuration.application.id = application?.id ?? configuration.application.id
    configuration.application.name = application?.name ?? configuration.application.name
    for entry in callback ?? [] {
      guard CallbackURL.isAcceptable(entry.url) else {
        throw Refusal("callback url \"\(entry.url)\" is not http:// or https://")
      }
      guard (entry.username == nil) == (entry.password == nil) else {
        throw Refusal("callback \"\(entry.url)\" needs both username and password, or neither")
      }
      configuration.callbacks.append(.init(url: entry.url, username: entry.username, password: entry.password))
    }
    for entry in type ?? [] { configuration.types.append(try checked(entry, after: configuration.types)) }
    return configuration
  }

  private func check(
    _ file: MobileAuthentication?, into settings: inout ServerConfiguration.MobileAuthentication
  ) throws(Refusal) {
    guard let file else { return }
    settings.enabled = file.enabled ?? settings.enabled
    settings.enrolment = file.enrolment ?? settings.enrolment
    settings.uniqueServerKeys = file.uniqueServerKeys ?? settings.uniqueServerKeys
    settings.callbackAllowList = file.callbackAllowList ?? settings.callbackAllowList
    settings.portalPlatformAlias = file.portalPlatformAlias ?? settings.portalPlatformAlias
    settings.minimumSoftwareVersion = file.minimumSoftwareVersion ?? settings.minimumSoftwareVersion
    if let mode = file.pushEnrolmentMode {
      guard let mode = ServerConfiguration.PushEnrolmentMode(rawValue: mode) else {
        throw Refusal("push_enrolment_mode is \"single\", \"override\" or \"multiple\", not \"\(mode)\"")
      }
      settings.pushEnrolmentMode = mode
    }
    settings.maxMessageLength =
      try within(1...10_000, file.maxMessageLength, "max_message_length") ?? settings.maxMessageLength
    settings.resultRetentionHours =
      try within(1...8760, file.resultRetentionHours, "result_retention_hours") ?? settings.resultRetentionHours
  }

  private func checked(
    _ entry: TypeEntry, after earlier: [ServerConfiguration.MobileAuthenticationType]
  ) throws(Refusal) -> ServerConfiguration.MobileAuthenticationType {
    guard !entry.name.isEmpty, entry.name.utf8.count <= 64 else { throw Refusal("a type's name has 1 to 64 bytes") }
    guard !earlier.contains(where: { $0.name == entry.name }) else {
      throw Refusal("the type \"\(entry.name)\" is there twice")
    }
    guard entry.method == ApprovalRequest.Method.push.rawValue else {
      throw Refusal("type \"\(entry.name)\": this version offers the method \"push\", not \"\(entry.method)\"")
    }
    var type = ServerConfiguration.MobileAuthenticationType(name: entry.name)
    type.requestExpiresIn =
      try within(1...86_400, entry.requestExpiresIn, "type.request_expires_in") ?? type.requestExpiresIn
    type.messages = entry.messages ?? [:]
    type.callbackOnExpiry = entry.callbackOnExpiry ?? false
    type.supersede = entry.supersede ?? false
    type.deliveryRequired = entry.deliveryRequired ?? false
    return type
  }

  private func within(_ range: ClosedRange<Int>, _ value: Int?, _ name: String) throws(Refusal) -> Int? {
    guard let value else { return nil }
    guard range.contains(value) else {
      throw Refusal("\"\(name)\" is \(value); it must be \(range.lowerBound) to \(range.upperBound)")
    }
    return value
  }
}
