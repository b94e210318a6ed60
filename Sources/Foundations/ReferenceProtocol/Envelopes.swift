// SPDX-License-Identifier: Apache-2.0
/// The message from server to device, signed with the server's key and encrypted to the device's. It contains sender
/// and recipient, so that the recipient cannot re-encrypt it for another device (surreptitious forwarding).
package struct ApprovalRequest: Codable, Sendable, Equatable {
  package enum Method: RawRepresentable, Codable, Sendable, Hashable {
    case push, pushWithPIN, pushWithFingerprint, pushWithCustomAuthenticator
    /// A method of a newer server. Two methods with the same name are equal.
    case other(String)

    package init(rawValue: String) { self = Self(known: rawValue) ?? .other(rawValue) }

    /// - Returns: nil for a method that this version does not know.
    package init?(known rawValue: String) {
      switch rawValue {
      case "push": self = .push
      case "push_with_pin": self = .pushWithPIN
      case "push_with_fingerprint": self = .pushWithFingerprint
      case "push_with_custom_authenticator": self = .pushWithCustomAuthenticator
      default: return nil
      }
    }

    package var rawValue: String {
      switch self {
      case .push: "push"
      case .pushWithPIN: "push_with_pin"
      case .pushWithFingerprint: "push_with_fingerprint"
      case .pushWithCustomAuthenticator: "push_with_custom_authenticator"
      case .other(let name): name
      }
    }
  }

  package var v: Int
  package var iss: String
  package var clientID: String
  package var profileID: String
  package var transactionID: String
  /// The name of the request type, chosen by the administrator, such as "login" or "payment".
  package var type: String
  package var method: Method
  /// The portal's `secure_message`.
  package var message: String?
  package var pushMessage: String?
  /// 32 random bytes, Base64url; the answer repeats them.
  package var nonce: String
  /// The required value of the answer's `attempt`; 1 if missing.
  package var attempt: Int?
  package var sentAtMs: Int64
  package var expiresInMs: Int64
  /// Counts of wrong PINs of the profile; set if the method requires a PIN.
  package var maxFailureCount: Int?
  package var previousFailureCount: Int?
  package var remainingFailureCount: Int?
  /// Whether an answer is confirmed with an `ApprovalReceipt`. Missing from servers that do not sign receipts.
  package var signedReceipt: Bool?
  /// The identifier of the authenticator; set if the method needs one, and then registered for the profile.
  package var authenticator: String?
  /// Other authenticators that approve the request instead of `authenticator`; nil for none. Devices of earlier
  /// versions ignore the member.
  package var alternatives: [Alternative]?
  /// The other methods with which the request can be approved; an unknown one is ignored. A fallback is the device's or
  /// the user's choice, at any time.
  package var fallbacks: [String]?
  /// 1 to 32 ASCII digits that the user must type to approve the request, whatever the method; nil for none. Sent only
  /// to a device that has announced `ApprovalCapabilities.readBack`.
  package var readBack: String?

  /// An authenticator that is registered for the profile, and the method that an approval with it has.
  package struct Alternative: Codable, Sendable, Equatable {
    package let authenticator: String
    package let method: Method

    package init(authenticator: String, method: Method) {
      self.authenticator = authenticator
      self.method = method
    }
  }

  /// The maximum number of authenticators other than the PIN that one request names.
  package static let mostAuthenticators = 16

  /// The authenticators other than the PIN that approve the request, the preferred one first: each alternative once,
  /// and no more than `mostAuthenticators`, whatever the message repeats.
  package var authenticators: [Alternative] {
    guard let authenticator else { return [] }
    var all = [Alternative(authenticator: authenticator, method: method)]
    for other in alternatives ?? []
    where all.count < Self.mostAuthenticators && other.authenticator != authenticator && !all.contains(other) {
      all.append(other)
    }
    return all
  }

  /// Whether the PIN approves the request.
  package var takesPIN: Bool { method == .pushWithPIN || fallbacks?.contains(Method.pushWithPIN.rawValue) == true }

  enum CodingKeys: String, CodingKey {
    case v, iss, authenticator, alternatives, fallbacks
    case readBack = "read_back"
    case signedReceipt = "signed_receipt"
    case clientID = "client_id"
    case profileID = "profile_id"
    case transactionID = "transaction_id"
    case type, method, message
    case pushMessage = "push_message"
    case nonce, attempt
    case sentAtMs = "sent_at_ms"
    case expiresInMs = "expires_in_ms"
    case maxFailureCount = "max_failure_count"
    case previousFailureCount = "previous_failure_count"
    case remainingFailureCount = "remaining_failure_count"
  }

  package init(
    iss: String, clientID: String, profileID: String, transactionID: String, type: String, method: Method,
    message: String?, pushMessage: String?, nonce: String, sentAtMs: Int64, expiresInMs: Int64
  ) {
    v = 1
    self.iss = iss
    self.clientID = clientID
    self.profileID = profileID
    self.transactionID = transactionID
    self.type = type
    self.method = method
    self.message = message
    self.pushMessage = pushMessage
    self.nonce = nonce
    self.sentAtMs = sentAtMs
    self.expiresInMs = expiresInMs
  }
}

/// The message from device to server, signed with the device's key and encrypted to the server's.
package struct ApprovalAnswer: Codable, Sendable, Equatable {
  package enum Decision: String, Codable, Sendable { case accept, deny }

  /// The deliberate gesture that made the decision.
  package struct Gesture: Codable, Sendable, Equatable {
    package enum Kind: String, Codable, Sendable {
      case hold, doublePress = "double_press", veryLongHold = "very_long_hold"
      /// Digits and Enter.
      case enter
      /// The keypad's cancel key.
      case cancelKeys = "cancel_keys"
      /// A finger on the fingerprint reader.
      case finger
      /// The data of a custom authenticator: a badge, a key, a code, a plug-in.
      case authenticator
      /// A gesture of a newer device.
      case other

      package init(from decoder: any Decoder) throws {
        self = Self(rawValue: try decoder.singleValueContainer().decode(String.self)) ?? .other
      }
    }

    package var kind: Kind
    package var heldMs: Int64

    enum CodingKeys: String, CodingKey {
      case kind
      case heldMs = "held_ms"
    }

    package init(kind: Kind, heldMs: Int64) {
      self.kind = kind
      self.heldMs = heldMs
    }
  }

  package var v: Int
  package var aud: String
  package var clientID: String
  package var profileID: String
  package var transactionID: String
  /// Base64url of SHA-256 over the exact decrypted request.
  package var requestSHA256: String
  package var nonce: String
  /// 1 for the first answer to this request.
  package var attempt: Int
  package var decision: Decision
  package var reason: DenialReason?
  /// For a denial, the request's method.
  package var methodUsed: ApprovalRequest.Method
  /// The request's method, if `methodUsed` is one of its `fallbacks` or that of one of its `alternatives`.
  package var fallbackFrom: ApprovalRequest.Method?
  package var gesture: Gesture
  package var answeredAfterMs: Int64
  /// Base64url of `KnowledgeKey.proof`, for an approval with the PIN.
  package var pinProof: String?
  /// The identifier, for an approval with an authenticator other than the PIN.
  package var authenticator: String?
  /// Base64url of `KnowledgeKey.proof(_:)` of an `AuthenticatorClaim`, for an approval with an authenticator other than
  /// the PIN.
  package var authenticatorProof: String?
  /// Base64, at most 4096 bytes decoded: the data for the script of a custom authenticator.
  package var customData: String?
  /// The digits that the user typed, which are those of the request; set for an approval of a request with `read_back`.
  package var readBack: String?
  /// Why an authenticator canceled the request: the underlying error, at most 256 bytes; only with a denial.
  package var underlyingError: String?

  enum CodingKeys: String, CodingKey {
    case v, aud
    case clientID = "client_id"
    case profileID = "profile_id"
    case transactionID = "transaction_id"
    case requestSHA256 = "request_sha256"
    case nonce, attempt, decision, reason
    case methodUsed = "method_used"
    case fallbackFrom = "fallback_from"
    case gesture
    case answeredAfterMs = "answered_after_ms"
    case pinProof = "pin_proof"
    case authenticator
    case authenticatorProof = "authenticator_proof"
    case customData = "custom_data"
    case readBack = "read_back"
    case underlyingError = "underlying_error"
  }

  package init(
    aud: String, clientID: String, profileID: String, transactionID: String, requestSHA256: String, nonce: String,
    attempt: Int, decision: Decision, reason: DenialReason?, methodUsed: ApprovalRequest.Method, gesture: Gesture,
    answeredAfterMs: Int64
  ) {
    v = 1
    self.aud = aud
    self.clientID = clientID
    self.profileID = profileID
    self.transactionID = transactionID
    self.requestSHA256 = requestSHA256
    self.nonce = nonce
    self.attempt = attempt
    self.decision = decision
    self.reason = reason
    self.methodUsed = methodUsed
    self.gesture = gesture
    self.answeredAfterMs = answeredAfterMs
  }
}
