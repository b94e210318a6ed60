// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Hummingbird
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// Authenticates devices: DPoP proofs with server nonces (RFC 9449), access tokens, revoked devices, rate limits.
struct DeviceGate: Sendable {
  /// The authenticated device and profile.
  struct Caller: Sendable {
    let clientID: ClientID
    /// Set for a `user` token.
    let profileID: ProfileID?
    /// How the token was obtained; nil for one of an earlier version of the server.
    let origin: AccessTokenOrigin?

    fileprivate init(_ owner: AccessTokenOwner) {
      clientID = owner.clientID
      profileID = owner.profileID
      origin = owner.origin
    }
  }

  let store: Store
  let hasher: KeyedHasher
  let origin: Origin
  let clock: ServerClock
  let nonces: DPoPNonces
  let seenProofs: any ReplayMemory
  /// Client assertions, and those assertions of PINs for which no client assertion was counted.
  let seenAssertions: any ReplayMemory
  let limiter: RateLimiter
  let revocations: Revocations
  private let headers = ProofHeaders()

  enum ProofError: Error, Equatable {
    case staleNonce, tooMany
    case invalid(String)
  }

  /// Verifies signature, method, URL, token and nonce of the DPoP proof. The caller must still check that the key
  /// belongs to the device, and then that the proof was not used before (`use`).
  func proof(of request: Request, accessToken: String?) throws(ProofError) -> DPoPProof {
    let proofs = request.headers[values: .dpop]
    guard proofs.count == 1 else { throw .invalid("exactly one DPoP header is needed") }
    return try verified(
      proofs[0], method: request.method.rawValue, url: origin.issuer + request.uri.path, accessToken: accessToken)
  }

  /// As `proof(of:accessToken:)`, for a request that this server or a resource server has received.
  func verified(
    _ text: String, method: String, url: String, accessToken: String?
  ) throws(ProofError) -> DPoPProof {
    let proof: DPoPProof
    do {
      proof = try DPoPProof(
        verifying: text, method: method, url: url, accessToken: accessToken, parse: headers.parsed)
    } catch { throw .invalid("\(error)") }
    guard let nonce = proof.nonce, nonces.isFresh(nonce) else { throw .staleNonce }
    return proof
  }

  /// Marks a proof as used. Only proofs of registered devices are stored, so that other clients cannot fill the memory.
  /// - Throws: `ProofError`, or an error of the database.
  func use(_ proof: DPoPProof, of clientID: ClientID) async throws {
    switch try await seenProofs.remember(proof.identifier, of: clientID.text) {
    case .new: return
    case .seen: throw ProofError.invalid("the proof was used before")
    case .tooMany: throw ProofError.tooMany
    case .full:
      nonces.forgetAll()
      seenProofs.forgetAll()
      throw ProofError.staleNonce
    }
  }

  /// - Returns: `full` for a new one, too: all older ones are forgotten then. Others must not be locked out, and a
  ///   forgotten assertion is useless without a new proof by the same key.
  func remember(assertion identifier: String, of clientID: ClientID) async throws -> ReplayCache.Status {
    let status = try await seenAssertions.remember(identifier, of: clientID.text)
    guard status == .full else { return status }
    seenAssertions.forgetAll()
    _ = try await seenAssertions.remember(identifier, of: clientID.text)
    return .full
  }

  /// Counts an attempt at a PIN in the device's share of assertions: the reply of each attempt is stored, also that the
  /// PIN is correct. A repeated one counts once.
  /// - Throws: `rateLimited`, or an error of the database.
  func count(_ attempt: PINAttempt) async throws {
    guard try await remember(assertion: attempt.key, of: attempt.clientID) != .tooMany else {
      throw DeviceAPIError(ProofError.tooMany)
    }
  }

  func admit(_ request: Request) async throws -> Caller { try await admit(request) { _, _ in }.caller }

  /// Authenticates a request, and reads what its route needs in the same state of the records.
  /// - Parameter read: runs when the device's key is verified, before all other checks. Its errors are thrown after
  ///   these.
  func admit<Value: Sendable>(
    _ request: Request, reading read: @escaping @Sendable (Database, Caller) throws -> Value
  ) async throws -> (caller: Caller, value: Value) {
    guard let token = AuthorizationHeader.word(of: request.headers[.authorization], scheme: "dpop") else {
      throw DeviceAPIError.challenge("invalid_token", "Authorization: DPoP TOKEN is missing")
    }
    let proof: DPoPProof
    do { proof = try self.proof(of: request, accessToken: token) } catch { throw DeviceAPIError(error) }
    let hash = hasher.hash(token, for: .accessToken)
    let now = clock.now()
    let (owner, value) = try await store.read { records in
      guard let owner = try records.accessTokenOwner(hash, now: now) else {
        throw DeviceAPIError.challenge("invalid_token", "the access token is unknown or has expired")
      }
      guard owner.keyThumbprint == proof.thumbprint else {
        throw DeviceAPIError.challenge("invalid_token", "the access token belongs to another key")
      }
      return (owner, try records.result { try read(records, Caller(owner)) })
    }
    guard limiter.allows(owner.clientID.text) else { throw DeviceAPIError(ProofError.tooMany) }
    RequestSender.authenticated(as: owner.clientID)
    do { try await use(proof, of: owner.clientID) } catch let error as ProofError { throw DeviceAPIError(error) }
    guard !owner.isDeleted else {
      throw DeviceAPIError(.deviceDeregistered, gone: Gone(clientID: owner.clientID))
    }
    try request.headers.checkProtocolVersions()
    return (Caller(owner), try value.get())
  }
}

extension DeviceAPIError {
  fileprivate init(_ refusal: DeviceGate.ProofError) {
    switch refusal {
    case .staleNonce:
      self = .challenge(OAuthError.useDPoPNonce, "the proof needs the nonce of the DPoP-Nonce header")
    case .tooMany: self.init(.rateLimited, header: .retryAfter(seconds: 1))
    case .invalid(let why): self = .challenge("invalid_dpop_proof", why)
    }
  }
}

extension DeviceGate.Caller {
  /// The profile in the path. It must exist and belong to this device.
  func profile(_ id: ProfileID, in store: Store) async throws -> Profile {
    try await store.records.profile(id, of: clientID)
  }

  /// Requires a `user` access token of the profile.
  func requireUser(_ profileID: ProfileID) throws {
    guard self.profileID == profileID else {
      throw DeviceAPIError.challenge("insufficient_scope", "this needs a user access token of the profile")
    }
  }

  /// Requires a `user` access token of the profile; where there is a PIN, one from a login with it. Neither another
  /// authenticator nor the activation's code may stand for the PIN: the weakest could replace the strongest.
  /// - Parameter authenticator: an authenticator whose login is enough, too; nil for none.
  func requirePINLogin(_ profile: Profile, orWith authenticator: String? = nil) throws {
    try requireUser(profile.id)
    guard profile.hasPIN, origin != .pin else { return }
    guard let authenticator, origin?.authenticator == authenticator else {
      throw DeviceAPIError.challenge("insufficient_scope", "this needs a login with the PIN: log in with it first")
    }
  }
}
