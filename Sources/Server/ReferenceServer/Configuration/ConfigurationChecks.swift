// SPDX-License-Identifier: Apache-2.0
import DisplayText
import MQTT
import ReferenceProtocol
import Secrets

// The fuzzer compiles this file in one module with the core's parsers.
#if canImport(TokenServerCore)
  import TokenServerCore
#endif

/// The semantic checks of a configuration. The error messages name the setting.
extension ConfigurationFile {
  func checked() throws(ConfigurationError) -> ServerConfiguration {
    var configuration = ServerConfiguration()
    configuration.listen = try address(listen, "listen") ?? configuration.listen
    configuration.port = try within(0...65535, port, "port") ?? configuration.port
    if let issuer { configuration.issuer = try checkedIssuer(issuer) }
    configuration.accessLog = accessLog ?? false
    configuration.certificateFile = tls?.certificate ?? configuration.certificateFile
    configuration.privateKeyFile = tls?.key ?? configuration.privateKeyFile
    try check(mobileAuthentication, into: &configuration.mobileAuthentication)
    try check(limits, into: &configuration.limits)
    try check(application, into: &configuration.application)
    configuration.mqtt = try mqtt.map { entry throws(ConfigurationError) in try checked(entry) }
    if let operations {
      var settings = ServerConfiguration.Operations()
      settings.listen = try address(operations.listen, "operations.listen") ?? settings.listen
      settings.port = try within(0...65535, operations.port, "operations.port") ?? settings.port
      settings.drainSeconds = try within(0...300, operations.drainSeconds, "operations.drain_seconds")
      guard
        settings.port == 0 || settings.port != configuration.port
          || ![settings.listen, "0.0.0.0", "::"].contains(configuration.listen)
            && !["0.0.0.0", "::"].contains(settings.listen)
      else { throw ConfigurationError("\"operations.port\" and \"port\" are both \(settings.port)") }
      configuration.operations = settings
    }
    if let database {
      var settings = ServerConfiguration.Database(url: database.url)
      settings.connections =
        try within(1...64, database.connections, "database.connections") ?? settings.connections
      configuration.database = settings
    }
    configuration.callbackPrivateAddresses = try ranges(callbackPrivateAddresses, "callback_private_addresses")
    configuration.proxyProtocolFrom = try ranges(proxyProtocolFrom, "proxy_protocol_from")
    for entry in callback ?? [] {
      configuration.callbacks.append(try checked(entry, after: configuration.callbacks))
    }
    for entry in authenticator ?? [] {
      configuration.authenticators.append(try entry.checked(after: configuration))
    }
    for entry in type ?? [] {
      let type = try entry.withAuthenticator(checked(entry, after: configuration), configuration)
      guard type.method != .pushWithPIN || configuration.application.pin else {
        throw ConfigurationError("type \"\(type.name)\": the method \"push_with_pin\" needs application.pin = true")
      }
      configuration.types.append(type)
    }
    return configuration
  }

  private func address(_ text: String?, _ name: String) throws(ConfigurationError) -> String? {
    guard text?.isEmpty != true else { throw ConfigurationError("\"\(name)\" is empty; it must be an address") }
    return text
  }

  /// An issuer is compared as text, and has paths appended. Tokens refuse others.
  private func checkedIssuer(_ issuer: String) throws(ConfigurationError) -> String {
    guard ActivationURI.isServer(issuer), CallbackURL.isAcceptable(issuer) else {
      throw ConfigurationError(
        "\"issuer\" must be https://HOST[:PORT] without a path or a slash at the end, with a HOST of letters, digits, "
          + "hyphens and dots, or an address, not \"\(issuer)\"")
    }
    return issuer
  }

  private func checked(
    _ entry: Callback, after earlier: [ServerConfiguration.Callback]
  ) throws(ConfigurationError) -> ServerConfiguration.Callback {
    do { _ = try CallbackURL(parsing: entry.url) } catch {
      throw ConfigurationError("callback url \"\(entry.url)\" \(error)")
    }
    func fail(_ why: String) -> ConfigurationError { .init("callback \"\(entry.url)\" \(why)") }
    guard !earlier.contains(where: { $0.url == entry.url }) else { throw fail("is defined twice") }
    guard (entry.username == nil) == (entry.password == nil) else {
      throw fail("needs both username and password, or neither")
    }
    // RFC 7617 §2.
    guard entry.username?.contains(":") != true else { throw fail("has a colon in its username") }
    guard ![entry.username, entry.password].contains(where: { $0?.hasControlCharacter == true }) else {
      throw fail("has a control character in its username or password")
    }
    return .init(url: entry.url, username: entry.username, password: entry.password)
  }

  /// A text for portals or logs.
  private func shown(_ text: String?, _ name: String) throws(ConfigurationError) -> String? {
    guard let text else { return nil }
    guard (1...128).contains(text.utf8.count), text.isSafeToShow else {
      throw ConfigurationError("\"\(name)\" must have 1 to 128 bytes without control or format characters")
    }
    return text
  }

  private func ranges(_ texts: [String]?, _ name: String) throws(ConfigurationError) -> [AddressRange] {
    try (texts ?? []).map { text throws(ConfigurationError) in
      guard let range = AddressRange(text) else {
        throw ConfigurationError("\"\(name)\" has \"\(text)\", which is neither ADDRESS nor ADDRESS/BITS")
      }
      return range
    }
  }

  private func check(
    _ file: MobileAuthentication?, into settings: inout ServerConfiguration.MobileAuthentication
  ) throws(ConfigurationError) {
    guard let file else { return }
    settings.enabled = file.enabled ?? settings.enabled
    settings.enrollment = file.enrollment ?? settings.enrollment
    settings.uniqueServerKeys = file.uniqueServerKeys ?? settings.uniqueServerKeys
    settings.callbackAllowList = file.callbackAllowList ?? settings.callbackAllowList
    settings.portalPlatformAlias =
      try shown(file.portalPlatformAlias, "mobile_authentication.portal_platform_alias") ?? settings.portalPlatformAlias
    if let version = file.minimumSoftwareVersion {
      guard version.isSoftwareVersion else {
        throw ConfigurationError(
          "\"mobile_authentication.minimum_software_version\" must be numbers with dots, such as \"1.2.0\", "
            + "not \"\(version)\"")
      }
      settings.minimumSoftwareVersion = version
    }
    if let mode = file.pushEnrollmentMode {
      guard let mode = ServerConfiguration.PushEnrollmentMode(rawValue: mode) else {
        throw ConfigurationError("push_enrollment_mode is \"single\", \"override\" or \"multiple\", not \"\(mode)\"")
      }
      settings.pushEnrollmentMode = mode
    }
    settings.maxMessageLength =
      try within(1...10_000, file.maxMessageLength, "max_message_length") ?? settings.maxMessageLength
    settings.notMeHoldSeconds =
      try within(0...86_400, file.notMeHoldSeconds, "not_me_hold_seconds") ?? settings.notMeHoldSeconds
    settings.resultRetentionHours =
      try within(1...8760, file.resultRetentionHours, "result_retention_hours") ?? settings.resultRetentionHours
  }

  private func check(_ file: Limits?, into limits: inout ServerConfiguration.Limits) throws(ConfigurationError) {
    func set(
      _ limit: WritableKeyPath<ServerConfiguration.Limits, Int>, _ value: Int?, _ range: ClosedRange<Int>,
      _ name: String
    ) throws(ConfigurationError) {
      limits[keyPath: limit] = try within(range, value, "limits.\(name)") ?? limits[keyPath: limit]
    }
    try set(\.deviceRequestsPerSecond, file?.deviceRequestsPerSecond, 1...100_000, "device_requests_per_second")
    try set(\.openRequestsPerDevice, file?.openRequestsPerDevice, 1...100_000, "open_requests_per_device")
    try set(\.devicesPerFleetToken, file?.devicesPerFleetToken, 1...10_000_000, "devices_per_fleet_token")
    try set(\.connections, file?.connections, 16...1_000_000, "connections")
    try set(\.connectionsPerSource, file?.connectionsPerSource, 1...1_000_000, "connections_per_source")
    try set(\.requestSeconds, file?.requestSeconds, 1...3600, "request_seconds")
    try set(\.idleSeconds, file?.idleSeconds, 1...3600, "idle_seconds")
    try set(\.deviceIdleSeconds, file?.deviceIdleSeconds, 1...86_400, "device_idle_seconds")
  }

  private func check(
    _ file: Application?, into application: inout ServerConfiguration.Application
  ) throws(ConfigurationError) {
    application.id = try shown(file?.id, "application.id") ?? application.id
    application.name = try shown(file?.name, "application.name") ?? application.name
    application.pin = file?.pin ?? application.pin
    application.biometric = file?.biometric ?? application.biometric
    application.customAuthenticators = file?.customAuthenticators ?? application.customAuthenticators
    guard application.pin || !(application.biometric || application.customAuthenticators) else {
      throw ConfigurationError(
        "\"application.biometric\" and \"application.custom_authenticators\" need application.pin = true")
    }
    // 0 is not "unlimited": a PIN without an attempt limit can be guessed.
    application.maxPINAttempts =
      try within(1...10, file?.maxPINAttempts, "application.max_pin_attempts") ?? application.maxPINAttempts
    guard let policy = file?.pinPolicy else { return }
    application.pinLength =
      try within(5...PIN.longest, policy.length, "application.pin_policy.length") ?? application.pinLength
    application.maxPINRepeats = try within(
      1...PIN.longest, policy.maxRepeats, "application.pin_policy.max_repeats")
    application.pinSequencesAllowed = policy.sequencesAllowed ?? false
    if let count = policy.blockList?.count, count > PINPolicyDescription.longestBlockList {
      throw ConfigurationError(
        "\"application.pin_policy.block_list\" has \(count) PINs; tokens take at most "
          + "\(PINPolicyDescription.longestBlockList)")
    }
    for blocked in policy.blockList ?? [] {
      guard blocked.utf8.count == application.pinLength, blocked.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
        throw ConfigurationError(
          "\"application.pin_policy.block_list\" has \"\(blocked)\"; a PIN has \(application.pinLength) digits")
      }
    }
    application.pinBlockList = policy.blockList ?? []
  }

  private func checked(_ entry: MQTT) throws(ConfigurationError) -> ServerConfiguration.MQTT {
    guard let (host, port) = BrokerAddress.parse(entry.broker) else {
      throw ConfigurationError("\"mqtt.broker\" is HOST or HOST:PORT, not \"\(entry.broker)\"")
    }
    guard (entry.username == nil) == (entry.password == nil) else {
      throw ConfigurationError("\"mqtt\" needs both username and password, or neither")
    }
    var mqtt = ServerConfiguration.MQTT(
      host: host, port: port, authorityFile: entry.authorities, username: entry.username, password: entry.password)
    mqtt.topicPrefix = entry.topicPrefix ?? mqtt.topicPrefix
    guard (1...64).contains(mqtt.topicPrefix.utf8.count), !mqtt.topicPrefix.contains(where: { "#+\0$".contains($0) })
    else { throw ConfigurationError("\"mqtt.topic_prefix\" has 1 to 64 bytes, none of them \"#\", \"+\" or \"$\"") }
    return mqtt
  }

  private func checked(
    _ entry: TypeEntry, after configuration: ServerConfiguration
  ) throws(ConfigurationError) -> ServerConfiguration.MobileAuthenticationType {
    guard (1...64).contains(entry.name.utf8.count), entry.name.isSafeToShow else {
      throw ConfigurationError("a type's name has 1 to 64 bytes without control or format characters")
    }
    guard !configuration.types.contains(where: { $0.name == entry.name }) else {
      throw ConfigurationError("the type \"\(entry.name)\" is defined twice")
    }
    guard let method = ApprovalRequest.Method(known: entry.method) else {
      let offered = "\"push\", \"push_with_pin\", \"push_with_fingerprint\" and \"push_with_custom_authenticator\""
      throw ConfigurationError(
        "type \"\(entry.name)\": this version offers the methods \(offered), not \"\(entry.method)\"")
    }
    var type = ServerConfiguration.MobileAuthenticationType(name: entry.name, method: method)
    type.requestExpiresIn =
      try within(1...86_400, entry.requestExpiresIn, "request_expires_in", of: "type \"\(entry.name)\"")
      ?? type.requestExpiresIn
    let longest = configuration.mobileAuthentication.maxMessageLength
    for (language, message) in (entry.messages ?? [:]).sorted(by: { $0.key < $1.key }) {
      guard message.unicodeScalars.count <= longest else {
        throw ConfigurationError(
          "type \"\(entry.name)\": the message \"\(language)\" is longer than max_message_length, \(longest)")
      }
    }
    type.messages = entry.messages ?? [:]
    type.callbackOnExpiry = entry.callbackOnExpiry ?? false
    type.supersede = entry.supersede ?? false
    type.deliveryRequired = entry.deliveryRequired ?? false
    return type
  }

  private func within(
    _ range: ClosedRange<Int>, _ value: Int?, _ name: String, of table: String? = nil
  ) throws(ConfigurationError) -> Int? {
    try Self.within(range, value, name, of: table)
  }

  /// - Parameter table: the entry of a list that has the setting.
  static func within(
    _ range: ClosedRange<Int>, _ value: Int?, _ name: String, of table: String? = nil
  ) throws(ConfigurationError) -> Int? {
    guard let value else { return nil }
    guard range.contains(value) else {
      throw ConfigurationError(
        (table.map { "\($0): " } ?? "")
          + "\"\(name)\" is \(value); it must be \(range.lowerBound) to \(range.upperBound)")
    }
    return value
  }
}

extension String {
  fileprivate var hasControlCharacter: Bool { utf8.contains { $0 < 0x20 || $0 == 0x7F } }

  /// Whether this is numbers with dots, each of which `SoftwareVersion` can compare.
  fileprivate var isSoftwareVersion: Bool {
    let numbers = split(separator: ".", omittingEmptySubsequences: false)
    return (1...8).contains(numbers.count)
      && numbers.allSatisfy { (1...9).contains($0.utf8.count) && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }
  }
}
