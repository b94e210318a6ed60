// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTP
import MobileAuth
import OpenPGP
import PINProtection
import ReferenceProtocol
import Secrets
import ServerBackends

extension Enrollment {
  /// A refresh token for which the user has not chosen a PIN yet.
  struct PINOffer {
    fileprivate let token: SecretBytes
    fileprivate let nonce: String

    /// Nil if the profile already has its PIN.
    init?(_ activation: AccessTokenResponse, to ephemeral: OpenPGPKey) throws(TokenServerError) {
      guard let sealed = activation.sealedToken else { return nil }
      guard let nonce = activation.pinNonce, let binary = activation.serverCertificate.flatMap(bytes(base64:)),
        let server = try? OpenPGPCertificate(parsing: binary)
      else { throw .unreachable("the token server's data for setting a PIN is incomplete") }
      token = try ReferenceServerClient.openToken(sealed, by: server, with: ephemeral)
      self.nonce = nonce
    }
  }

  /// The server keeps an account without its PIN for ten minutes from its activation, and its code may end before.
  private func choosePIN(_ policy: PINPolicy, with pinSetup: PINSetup) async throws -> PIN {
    do { return try await pinSetup.choose(policy) } catch let ending as PanelDialog.EntryError {
      throw UnfinishedEnrollmentError(
        ending,
        remedy: "run the same command with the same URI or typed code again, while the code is valid, at most ten "
          + "minutes after this; later it needs a new one")
    }
  }

  /// Lets the user choose a PIN and activates it. The encrypted refresh token is stored before the server activates it.
  /// After a crash in between, the server offers another token and the user chooses again.
  func setPIN(
    _ offer: PINOffer?, _ policy: PINPolicy, of account: inout AccountRecord, _ credentials: inout AccountCredentials,
    _ client: DeviceClient, _ user: DeviceClient.Authority
  ) async throws {
    guard let offer, let pinSetup else {
      guard credentials.pin != nil else {
        throw TokenServerError.alreadyEnrolled("its PIN was set on another device; ask for a new activation code")
      }
      return
    }
    progress("choose a PIN of \(policy.length) digits: type it on the keypad, press Enter, and repeat it")
    let pin = try await choosePIN(policy, with: pinSetup)
    progress("setting the PIN")
    let token = try ProtectedToken(
      offer.token, under: pin, binding: pinSetup.binding, parameters: pinSetup.parameters)
    credentials.pin = AccountPIN(token)
    account = try change(account, noting: .pinSet, "\(pin.count) digits") {
      var kept = try AccountCredentials(remainderOf: $0, or: credentials.key)
      kept.pin = credentials.pin
      $0 = kept.stored(in: $0)
      $0.displayName = account.displayName
    }
    let key = try KnowledgeKey(
      refreshToken: offer.token, clientID: client.clientID ?? "", profileID: account.profile)
    let path = "/profiles/\(account.profile)/pin"
    let assertion = try await client.assertion(by: key, for: account.profile, path: path, nonce: offer.nonce)
    _ = try await client.call(.post, path, body: JSON.encode(PINActivation(assertion: assertion)), as: user)
  }
}
