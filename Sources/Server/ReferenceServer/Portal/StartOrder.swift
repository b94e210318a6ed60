// SPDX-License-Identifier: Apache-2.0
/// The request of a portal to start a transaction, with all checks that need no database.
struct StartOrder: Sendable, Equatable {
  let type: ServerConfiguration.MobileAuthenticationType
  let userID: String
  let callbackURI: String
  let message: String
  let secureMessage: String?

  enum ParseError: Error, Equatable, Sendable {
    case unknownType, messageTooLong
    /// The error in a parameter, as a sentence.
    case badParameter(String)
  }

  init(_ form: Form, _ configuration: ServerConfiguration) throws(ParseError) {
    let settings = configuration.mobileAuthentication
    guard let type = configuration.type(named: try Self.required("type", in: form)) else { throw .unknownType }
    self.type = type
    userID = try Self.required("user_id", in: form)
    callbackURI = try Self.required("callback_uri", in: form)
    do { _ = try CallbackURL(parsing: callbackURI) } catch { throw .badParameter("\"callback_uri\" \(error).") }
    let callback = callbackURI
    guard !settings.callbackAllowList || configuration.callbacks.contains(where: { $0.url == callback }) else {
      throw .badParameter("\"callback_uri\" is not one of the configured callbacks.")
    }
    let defaultMessage = form["language_code"].flatMap { type.messages[$0] } ?? type.messages["en"]
    guard let message = form["message"] ?? defaultMessage else { throw .badParameter("\"message\" is missing.") }
    guard message.unicodeScalars.count <= settings.maxMessageLength else { throw .messageTooLong }
    self.message = message
    secureMessage = form["secure_message"]
  }

  private static func required(_ name: String, in form: Form) throws(ParseError) -> String {
    guard let value = form[name] else { throw .badParameter("\"\(name)\" is missing.") }
    return value
  }
}
