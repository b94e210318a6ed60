// SPDX-License-Identifier: Apache-2.0

// Statements of the server about an enrollment that a proxy cannot forge: OpenPGP messages, signed with the server's
// key of the enrollment and encrypted to the device's. Each contains its `kind`, so that one cannot be used as another.

/// The signed result of an answer, bound to that answer. `RequestStatus.sealedReceipt` contains it in Base64 if the
/// request has `signed_receipt`: a device then accepts no other confirmation.
package struct ApprovalReceipt: Codable, Sendable, Equatable {
  package enum Kind: String, Codable, Sendable { case receipt }

  package var v: Int
  package var kind: Kind
  package var iss: String
  package var clientID: String
  package var profileID: String
  package var transactionID: String
  package var state: RequestState
  /// The value of `RequestStatus.receipt`.
  package var receipt: String
  package var idempotencyKey: String
  /// Base64url of SHA-256 over the body of the answer or denial, as it was sent.
  package var answerSHA256: String

  enum CodingKeys: String, CodingKey {
    case v, kind, iss, state, receipt
    case clientID = "client_id"
    case profileID = "profile_id"
    case transactionID = "transaction_id"
    case idempotencyKey = "idempotency_key"
    case answerSHA256 = "answer_sha256"
  }

  package init(
    iss: String, clientID: String, profileID: String, transactionID: String, state: RequestState, receipt: String,
    idempotencyKey: String, answerSHA256: String
  ) {
    v = 1
    kind = .receipt
    self.iss = iss
    self.clientID = clientID
    self.profileID = profileID
    self.transactionID = transactionID
    self.state = state
    self.receipt = receipt
    self.idempotencyKey = idempotencyKey
    self.answerSHA256 = answerSHA256
  }
}

/// A notice that an enrollment was removed permanently. With 9002 and 9003, `Problem.revocations` and
/// `OAuthError.revocations` contain one notice in Base64 for each enrollment of the device whose keys the server still
/// has.
///
/// A device that can decrypt a notice wipes the subject of the notice at once. A proxy can forge 9002, 9003, 9020 and
/// 9021 without a notice: they stop the account. The account is wiped, or loses its keys, only when a second query gets
/// the same response, over a new TLS connection, with a new access token and at least a minute later.
package struct RevocationNotice: Codable, Sendable, Equatable {
  package enum Kind: String, Codable, Sendable { case revocation }
  /// The subject of the removal: the keys or the push enrollment of the profile (`keys`), the profile (`user`), or the
  /// device with all its profiles (`device`).
  package enum Scope: String, Codable, Sendable { case keys, user, device }

  /// The lowest layer of the enrollment that is lost. Each layer needs those before it: the profile with its PIN, the
  /// keys of mobile authentication, push.
  package enum Layer: String, Codable, Sendable {
    case mobileAuth = "mobile-auth"
    case push
    /// A layer of a newer server.
    case other

    package init(from decoder: any Decoder) throws {
      self = Self(rawValue: try decoder.singleValueContainer().decode(String.self)) ?? .other
    }
  }

  package var v: Int
  package var kind: Kind
  package var iss: String
  package var clientID: String
  package var profileID: String
  package var scope: Scope
  /// With `keys`: what is lost; nil from an earlier server. With `push` the device keeps its keys, and can enroll for
  /// push again; with `mobile-auth` it keeps its PIN, and can exchange keys again.
  package var layer: Layer?

  enum CodingKeys: String, CodingKey {
    case v, kind, iss, scope, layer
    case clientID = "client_id"
    case profileID = "profile_id"
  }

  package init(iss: String, clientID: String, profileID: String, scope: Scope, layer: Layer? = nil) {
    v = 1
    kind = .revocation
    self.iss = iss
    self.clientID = clientID
    self.profileID = profileID
    self.scope = scope
    self.layer = layer
  }
}
