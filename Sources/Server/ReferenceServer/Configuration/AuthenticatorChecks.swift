// SPDX-License-Identifier: Apache-2.0
import DisplayText
import ReferenceProtocol

// The fuzzer compiles this file in one module with the core's parsers.
#if canImport(TokenServerCore)
  import TokenServerCore
#endif

/// The checks of `[[authenticator]]`, and of the settings of a type that name one.
extension ConfigurationFile.AuthenticatorTable {
  private typealias Authenticator = ServerConfiguration.Authenticator

  func checked(
    after configuration: ServerConfiguration
  ) throws(ConfigurationFile.ConfigurationError) -> ServerConfiguration.Authenticator {
    guard (1...64).contains(id.utf8.count), ![AuthenticatorEntry.pinIdentifier, ".", ".."].contains(id),
      id.utf8.allSatisfy({ Self.isAllowed($0) })
    else {
      throw .init(
        "an authenticator's id has 1 to 64 of a-z, 0-9, \"-\", \"_\" and \".\", and is not \"pin\", \".\" or \"..\"")
    }
    func fail(_ why: String) -> ConfigurationFile.ConfigurationError { .init("authenticator \"\(id)\": \(why)") }
    guard configuration.authenticator(id) == nil else { throw fail("is defined twice") }
    guard let kind = Authenticator.Kind(rawValue: kind) else {
      throw fail("the kind is \"biometric\" or \"custom\", not \"\(self.kind)\"")
    }
    guard (1...128).contains(name.utf8.count), name.isSafeToShow else {
      throw fail("the name has 1 to 128 bytes without control characters")
    }
    var authenticator = Authenticator(id: id, name: name, kind: kind)
    guard kind == .custom else {
      guard scripts == nil, signature == nil, timeLimitSeconds == nil, maxFailures == nil, user == nil else {
        throw fail(
          "\"scripts\", \"signature\", \"time_limit_seconds\", \"max_failures\" and \"user\" are for kind = \"custom\"")
      }
      return authenticator
    }
    authenticator.maxFailures =
      try ConfigurationFile.within(1...100, maxFailures, "max_failures", of: "authenticator \"\(id)\"")
      ?? authenticator.maxFailures
    if let signature {
      guard scripts == nil, timeLimitSeconds == nil, user == nil else {
        throw fail("\"scripts\", \"time_limit_seconds\" and \"user\" are not for an authenticator with \"signature\"")
      }
      guard let scheme = Authenticator.SignatureScheme(rawValue: signature) else {
        throw fail("the signature is \"security_key\" or \"badge\", not \"\(signature)\"")
      }
      authenticator.signature = scheme
      return authenticator
    }
    guard let scripts, !scripts.isEmpty, !scripts.contains("\0") else {
      throw fail(
        "\"scripts\" must be the folder with the executables \"register\" and \"authenticate\"; or set \"signature\"")
    }
    authenticator.scripts = scripts
    authenticator.timeLimitSeconds =
      try ConfigurationFile.within(1...60, timeLimitSeconds, "time_limit_seconds", of: "authenticator \"\(id)\"")
      ?? authenticator.timeLimitSeconds
    if let user {
      guard (1...32).contains(user.utf8.count), user.utf8.allSatisfy({ Self.isAllowed($0) }), user.first != "-" else {
        throw fail("\"user\" is not a user name")
      }
      authenticator.user = user
    }
    return authenticator
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
    case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."): true
    default: false
    }
  }
}

extension ConfigurationFile.TypeEntry {
  /// Adds the settings about authenticators, displays and digits to type.
  func withAuthenticator(
    _ type: ServerConfiguration.MobileAuthenticationType, _ configuration: ServerConfiguration
  ) throws(ConfigurationFile.ConfigurationError) -> ServerConfiguration.MobileAuthenticationType {
    func fail(_ why: String) -> ConfigurationFile.ConfigurationError { .init("type \"\(name)\": \(why)") }
    var type = type
    type.requiresDisplay = requiresDisplay ?? false
    guard readBack == nil || readBack == "digits" else { throw fail("\"read_back\" can only be \"digits\"") }
    type.readsBack = readBack != nil
    let kind: ServerConfiguration.Authenticator.Kind
    switch type.method {
    case .push, .pushWithPIN, .other:
      guard authenticator == nil, alternatives == nil, fallback == nil else {
        throw fail(
          "\"authenticator\", \"alternatives\" and \"fallback\" are for methods with an authenticator other than the PIN"
        )
      }
      return type
    case .pushWithFingerprint: kind = .biometric
    case .pushWithCustomAuthenticator: kind = .custom
    }
    let setting = kind == .biometric ? "biometric" : "custom_authenticators"
    guard configuration.isEnabled(kind) else {
      throw fail("the method \"\(method)\" needs application.\(setting) = true")
    }
    let candidates = configuration.authenticators.filter {
      $0.kind == kind && (authenticator == nil || $0.id == authenticator)
    }
    guard candidates.count == 1, let chosen = candidates.first else {
      throw fail("\"authenticator\" must be the id of one [[authenticator]] of kind \"\(kind.rawValue)\"")
    }
    type.authenticator = chosen.id
    type.alternatives = alternatives ?? []
    guard type.alternatives.count < ApprovalRequest.mostAuthenticators,
      Set(type.alternatives + [chosen.id]).count == type.alternatives.count + 1,
      type.alternatives.allSatisfy({ configuration.authenticator($0).map { configuration.isEnabled($0.kind) } == true })
    else { throw fail("\"alternatives\" must be ids of other [[authenticator]] that are enabled, each once") }
    switch fallback ?? ApprovalRequest.Method.pushWithPIN.rawValue {
    case ApprovalRequest.Method.pushWithPIN.rawValue: type.fallsBackToPIN = true
    case "none": type.fallsBackToPIN = false
    case let other: throw fail("the fallback is \"push_with_pin\" or \"none\", not \"\(other)\"")
    }
    return type
  }
}
