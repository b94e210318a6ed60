// SPDX-License-Identifier: Apache-2.0

/// The request of a portal to start a transaction, after all checks that need no database.
package struct StartRequest: Sendable, Equatable {
  /// Which device of the user to ask.
  package enum Target: Sendable, Equatable {
    case device(ClientID)
    /// The only device that is enrolled.
    case anyDevice
  }

  /// The portal's client id.
  package let portal: String
  package let type: ServerConfiguration.MobileAuthenticationType
  package let userID: UserID
  package let target: Target
  package let callbackURI: String
  package let message: String
  package let secureMessage: String?
  /// The digits that the user must type; set for a type that wants some.
  package let readBack: String?

  package init(
    portal: String, type: ServerConfiguration.MobileAuthenticationType, userID: UserID, target: Target,
    callbackURI: String, message: String, secureMessage: String?, readBack: String? = nil
  ) {
    self.portal = portal
    self.type = type
    self.userID = userID
    self.target = target
    self.callbackURI = callbackURI
    self.message = message
    self.secureMessage = secureMessage
    self.readBack = readBack
  }
}
