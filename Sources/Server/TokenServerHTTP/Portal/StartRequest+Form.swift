// SPDX-License-Identifier: Apache-2.0
// The fuzzer compiles this file in one module with the core's parsers.
#if canImport(TokenServerCore)
  import TokenServerCore
#endif

extension StartRequest {
  enum ParseError: Error, Equatable, Sendable {
    case unknownType, unknownApplication, messageTooLong
    /// The error in a parameter, as a sentence.
    case badParameter(String)
  }

  /// The maximum length of `secure_message` in Unicode scalars.
  static let maxSecureMessageLength = 4096

  /// Parses the form of `POST …/authenticate/user`.
  init(_ form: Form, _ version: PortalVersion, _ configuration: ServerConfiguration) throws(ParseError) {
    let settings = configuration.mobileAuthentication
    // The type is checked first, because other types will have other parameters.
    guard let type = configuration.type(named: try Self.required("type", in: form)) else { throw .unknownType }
    let userID = UserID(try Self.required("user_id", in: form))
    let target = try Self.target(form, version, configuration.application)
    let callbackURI = try Self.required("callback_uri", in: form)
    do { _ = try CallbackURL(parsing: callbackURI) } catch { throw .badParameter("\"callback_uri\" \(error).") }
    guard !settings.callbackAllowList || configuration.callbacks.contains(where: { $0.url == callbackURI }) else {
      throw .badParameter("\"callback_uri\" is not one of the configured callbacks.")
    }
    let defaultMessage = form["language_code"].flatMap { type.messages[$0] } ?? type.messages["en"]
    guard let message = form["message"] ?? defaultMessage else { throw .badParameter("\"message\" is missing.") }
    guard message.unicodeScalars.count <= settings.maxMessageLength else { throw .messageTooLong }
    let secureMessage = form["secure_message"]
    guard secureMessage.map({ $0.unicodeScalars.count <= Self.maxSecureMessageLength }) ?? true else {
      throw .messageTooLong
    }
    self.init(
      type: type, userID: userID, target: target, callbackURI: callbackURI, message: message,
      secureMessage: secureMessage)
  }

  private static func target(
    _ form: Form, _ version: PortalVersion, _ application: ServerConfiguration.Application
  ) throws(ParseError) -> Target {
    switch version {
    case .v4: return .device(ClientID(try required("device_id", in: form)))
    case .v3:
      guard try required("app_id", in: form) == application.id else { throw .unknownApplication }
      return .anyDevice
    }
  }

  private static func required(_ name: String, in form: Form) throws(ParseError) -> String {
    guard let value = form[name] else { throw .badParameter("\"\(name)\" is missing.") }
    return value
  }
}
