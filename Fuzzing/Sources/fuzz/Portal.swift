// SPDX-License-Identifier: Apache-2.0
import Foundation
import ReferenceProtocol

@testable import ServerParsers

/// Data that portals send to the token server: forms, the URLs in them, JSON.
func readPortalRequest(_ bytes: [UInt8]) {
  let input = Input(bytes, choices: 6)
  switch input.choice {
  case 0: readForm(input.bytes)
  case 1: judgeCallback(input.text)
  case 2: _ = try? JSON.decode(EndUserBody.BulkDelete.self, from: input.bytes)
  case 3: _ = SoftwareVersion(input.text) < SoftwareVersion("1.2.3")
  case 4: readOrder(input.bytes, configuration)
  default: readOrder(input.bytes, strictConfiguration)
  }
}

private func readForm(_ bytes: [UInt8]) {
  guard let form = try? Form(parsing: bytes) else { return }
  for name in ["type", "user_id", "message", "secure_message", "language_code"] { _ = form[name]?.unicodeScalars.count }
  if let callback = form["callback_uri"] { judgeCallback(callback) }
}

/// Parses the request of a portal to start a transaction.
private func readOrder(_ bytes: [UInt8], _ configuration: ServerConfiguration) {
  guard let form = try? Form(parsing: bytes), let order = try? StartRequest(form, of: "p", .v4, configuration)
  else { return }
  let limit = configuration.mobileAuthentication.maxMessageLength
  require(
    order.message.unicodeScalars.count <= limit && !order.userID.text.isEmpty, "an accepted order keeps the limits")
  require(
    (order.readBack != nil) == order.type.readsBack && order.readBack?.isEmpty != true,
    "an order has digits to type if its type wants some")
  judgeCallback(order.callbackURI)
}

private let configuration: ServerConfiguration = {
  var configuration = ServerConfiguration()
  configuration.types = [
    .init(name: "login", messages: ["en": "Log in?", "nl": "Inloggen?"]), .init(name: "payment", method: .pushWithPIN),
  ]
  configuration.types.append(.init(name: "transfer"))
  configuration.types[2].readsBack = true
  return configuration
}()

private let strictConfiguration: ServerConfiguration = {
  var strict = configuration
  strict.mobileAuthentication.callbackAllowList = true
  strict.mobileAuthentication.maxMessageLength = 3
  strict.callbacks = [.init(url: "https://p/")]
  return strict
}()

/// The URL is stored and given to an HTTP client when the request has ended: it must be rejected before that.
private func judgeCallback(_ text: String) {
  guard CallbackURL.isAcceptable(text) else { return }
  require(text.utf8.allSatisfy { (0x21...0x7E).contains($0) }, "an accepted callback address has only visible ASCII")
  let port = URL(string: text)?.port ?? 443
  require((0...65_535).contains(port), "an accepted callback address has a port that exists, not \(port)")
}
