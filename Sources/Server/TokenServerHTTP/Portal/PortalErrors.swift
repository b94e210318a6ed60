// SPDX-License-Identifier: Apache-2.0
import HTTPTypes
import TokenServerCore

/// The numbered errors of the mobile authentication API that this server uses.
extension ResponseError {
  static let mobileAuthenticationDisabled = ResponseError(
    .notFound, "mobile_authentication_disabled", "Mobile authentication is disabled.", code: 1000)
  static let notPossible = ResponseError(
    .notFound, "not_found", "The user is unknown or cannot be authenticated this way.", code: 1001)
  static let temporarilyUnavailable = ResponseError(
    .serviceUnavailable, "temporarily_unavailable", "The request cannot be started now.", code: 1002,
    headers: [.retryAfter: "10"])
  /// The user answered "not me" recently.
  static func heldOff(milliseconds: Int64) -> ResponseError {
    ResponseError(
      .serviceUnavailable, "temporarily_unavailable",
      "The user answered an earlier request with \"not me\"; further ones are held off for a while.", code: 1002,
      headers: [.retryAfter: "\(max(1, (milliseconds + 999) / 1000))"])
  }
  static let badParameterCode = 1003
  static func badParameter(_ why: String) -> ResponseError {
    ResponseError(.badRequest, "invalid_request", why, code: badParameterCode)
  }
  static let messageTooLong = ResponseError(.badRequest, "invalid_request", "The message is too long.", code: 1005)
  static let smsDisabled = ResponseError(.notFound, "sms_disabled", "SMS authentication is disabled.", code: 3000)
  static let unknownTransaction = ResponseError(.notFound, "not_found", "The transaction is unknown.", code: 3004)
  static let unknownType = ResponseError(.notFound, "not_found", "The authentication type is unknown.", code: 3005)
  static let demandsVersion4 = ResponseError(.notFound, "not_found", "This server demands API version 4.", code: 4001)

  static let invalidClient = ResponseError(
    .unauthorized, "invalid_client", "Client authentication failed.",
    headers: [.wwwAuthenticate: #"Basic realm="token-server", charset="UTF-8""#])
  static let unauthorized = ResponseError(
    .unauthorized, "unauthorized", "Client authentication failed.",
    headers: [.wwwAuthenticate: #"Basic realm="token-server", charset="UTF-8""#])
  static let insufficientPermissions = ResponseError(
    .forbidden, "insufficient_permissions", "The client may not use this API.")
}

extension ResponseError {
  init(_ parseError: StartRequest.ParseError) {
    switch parseError {
    case .unknownType: self = .unknownType
    case .unknownApplication: self = .notPossible
    case .messageTooLong: self = .messageTooLong
    case .badParameter(let why): self = .badParameter(why)
    }
  }

  init(_ startError: StartError) {
    switch startError {
    case .notPossible: self = .notPossible
    case .tooManyOpen: self = .temporarilyUnavailable
    case .onHold(let remaining): self = .heldOff(milliseconds: remaining.milliseconds)
    }
  }
}
