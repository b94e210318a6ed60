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

  /// The maximum length of `secure_message` in bytes of UTF-8. In a form each can take three, in JSON six: both fit
  /// into the bodies that server and token accept.
  static let maxSecureMessageBytes = 65_536

  /// Parses the form of `POST …/authenticate/user`.
  /// - Parameter portal: the client id of the authenticated portal.
  init(
    _ form: Form, of portal: String, _ version: PortalVersion, _ configuration: ServerConfiguration
  ) throws(ParseError) {
    for name in ["user_id", "device_id", "message", "secure_message"] where form[name]?.utf8.contains(0) == true {
      throw .badParameter("\"\(name)\" contains U+0000.")
    }
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
    guard secureMessage.map({ $0.utf8.count <= Self.maxSecureMessageBytes }) ?? true else {
      throw .messageTooLong
    }
    self.init(
      portal: portal, type: type, userID: userID, target: target, callbackURI: callbackURI, message: message,
      secureMessage: secureMessage, readBack: try Self.readBack(form, type, in: secureMessage ?? message))
  }

  /// The maximum number of digits that can be typed on a token.
  static let mostReadBackDigits = 32

  /// - Parameter text: what a display shows: it must name the digits that the user types.
  private static func readBack(
    _ form: Form, _ type: ServerConfiguration.MobileAuthenticationType, in text: String
  ) throws(ParseError) -> String? {
    guard type.readsBack else {
      guard form["read_back"] == nil else { throw .badParameter("\"read_back\" is not for this type.") }
      return nil
    }
    let digits = try required("read_back", in: form)
    guard (1...mostReadBackDigits).contains(digits.utf8.count), digits.utf8.allSatisfy(\.isDigit) else {
      throw .badParameter("\"read_back\" has 1 to \(mostReadBackDigits) digits.")
    }
    guard numbers(in: text).contains(digits) else {
      throw .badParameter("The message does not contain the digits of \"read_back\" as a number.")
    }
    return digits
  }

  /// The numbers in a text, without what separates their digits: one of `. , '`, a space or a no-break space.
  private static func numbers(in text: String) -> Set<String> {
    var (numbers, number, isSeparated) = (Set<String>(), "", false)
    for scalar in text.unicodeScalars {
      if scalar.isASCII, UInt8(scalar.value).isDigit {
        number.unicodeScalars.append(scalar)
        isSeparated = false
      } else if !number.isEmpty, !isSeparated, ".,' \u{A0}\u{202F}".unicodeScalars.contains(scalar) {
        isSeparated = true
      } else {
        numbers.insert(number)
        (number, isSeparated) = ("", false)
      }
    }
    return numbers.union([number])
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

extension UInt8 {
  fileprivate var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
}
