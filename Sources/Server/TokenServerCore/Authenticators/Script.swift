// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import ReferenceProtocol

/// Runs the scripts of custom authenticators.
package protocol ScriptRunner: Sendable {
  /// Runs one script. It may be asked again with the same attempt ID, after a crash of the server.
  /// - Returns: the result, of status 3000 to 3999 if the script could not be run or gave none; nil if too many scripts
  ///   run.
  func run(_ call: ScriptCall, of authenticator: ServerConfiguration.Authenticator) async -> ScriptResult?

  /// Whether both steps of a custom authenticator could be run now.
  func canRun(_ authenticator: ServerConfiguration.Authenticator) -> Bool
}

extension ServerConfiguration {
  /// The configuration without the custom authenticators that cannot be verified now, because a script is missing or
  /// not executable.
  package func usable(with scripts: any ScriptRunner) -> ServerConfiguration {
    var usable = self
    usable.authenticators.removeAll { $0.kind == .custom && !scripts.canRun($0) }
    return usable
  }
}

/// The input of a script, as JSON on its standard input.
package struct ScriptCall: Codable, Sendable, Equatable {
  package enum Step: String, Codable, Sendable, CaseIterable { case register, authenticate }

  package typealias Purpose = AuthenticatorChallenge.Purpose

  package var v = 1
  package var step: Step
  package var purpose: Purpose
  /// The same in a repetition of the same attempt.
  package var attemptID: String
  package var authenticator: String
  package var iss: String
  package var userID: String
  package var clientID: String
  package var profileID: String
  /// Base64, from the device.
  package var data: String
  /// What the registration script returned.
  package var registrationData: String?
  /// A fresh value that the data can be bound to: the nonce of the request, the `jti` of the login, or the ID of the
  /// registration.
  package var nonce: String
  /// Base64url of the `AuthenticatorChallenge` of all these values, which the data can sign.
  package private(set) var challenge = ""
  /// Set for `push`.
  package var transactionID: String?
  package var type: String?
  package var decision: String?
  /// Base64url of SHA-256 over the exact decrypted request.
  package var requestSHA256: String?
  /// Base64url of SHA-256 over the portal's `secure_message`, in UTF-8; of no bytes without one.
  package var messageSHA256: String?

  enum CodingKeys: String, CodingKey {
    case v, step, purpose, authenticator, iss, data, nonce, challenge, type, decision
    case attemptID = "attempt_id"
    case userID = "user_id"
    case clientID = "client_id"
    case profileID = "profile_id"
    case registrationData = "registration_data"
    case transactionID = "transaction_id"
    case requestSHA256 = "request_sha256"
    case messageSHA256 = "message_sha256"
  }

  package init(
    _ step: Step, for purpose: Purpose, _ name: AuthenticatorName, of userID: UserID, issuer: String, data: [UInt8],
    nonce: String
  ) {
    self.step = step
    self.purpose = purpose
    attemptID = ""
    authenticator = name.id
    iss = issuer
    self.userID = userID.text
    clientID = name.profile.clientID.text
    profileID = name.profile.id.text
    self.data = data.base64
    self.nonce = nonce
    setChallenge()
  }

  /// Must be called after a value has changed that the challenge is made of.
  package mutating func setChallenge() { challenge = authenticatorChallenge.digest.base64URL }

  /// What the data of this call can sign.
  var authenticatorChallenge: AuthenticatorChallenge {
    var challenge = AuthenticatorChallenge(
      for: purpose, issuer: iss, clientID: clientID, profileID: profileID, authenticator: authenticator, nonce: nonce)
    challenge.transactionID = transactionID ?? ""
    challenge.decision = decision ?? ""
    challenge.requestSHA256 = requestSHA256 ?? ""
    challenge.messageSHA256 = messageSHA256 ?? ""
    return challenge
  }
}
