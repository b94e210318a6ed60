// SPDX-License-Identifier: Apache-2.0
import Cryptography
import OpenPGP
import ReferenceProtocol

/// A removed profile, or a removed device with all its profiles.
package struct Gone: Sendable, Equatable {
  package let clientID: ClientID
  /// Nil for the whole device.
  package var profileID: ProfileID?
  /// Whether only the keys or the push enrollment of the profile were removed, not the profile.
  package var isKeysAlone = false

  package init(clientID: ClientID, profileID: ProfileID? = nil, isKeysAlone: Bool = false) {
    self.clientID = clientID
    self.profileID = profileID
    self.isKeysAlone = isKeysAlone
  }
}

/// Signed notices of removed enrollments. Each is signed with the server's key of that enrollment, so that a proxy
/// cannot forge one.
package struct Revocations: Sendable {
  /// The maximum number in one response, more than the number of accounts on a device: each costs a signature.
  package static let most = 16

  package let store: any RecordStore
  package let keyring: ServerKeyring
  package let origin: Origin

  package init(store: any RecordStore, keyring: ServerKeyring, origin: Origin) {
    self.store = store
    self.keyring = keyring
    self.origin = origin
  }

  /// - Returns: the notices in Base64; nil if the keys of the removed enrollments are deleted.
  package func notices(for gone: Gone?) async -> [String]? {
    guard let gone else { return nil }
    let (clientID, profileID) = (gone.clientID, gone.profileID)
    do {
      let profiles = try await store.read { database in
        guard let profileID else { return try database.formerProfiles(on: clientID, limit: Self.most) }
        return try database.profile(profileID, on: clientID).map { [$0] } ?? []
      }
      var notices: [String] = []
      for profile in profiles {
        let scope: RevocationNotice.Scope = profileID == nil ? .device : gone.isKeysAlone ? .keys : .user
        guard let sealed = try await notice(for: profile, scope) else { continue }
        notices.append(sealed)
      }
      return notices.isEmpty ? nil : notices
    } catch { return nil }
  }

  /// The reply on the PIN attempt that reached the limit, with the notice added.
  package func explained(_ reply: StoredReply, _ attempt: PINAttempt) async -> StoredReply {
    guard !reply.isSuccess else { return reply }
    let gone = Gone(clientID: attempt.clientID, profileID: attempt.profileID)
    if var problem = try? JSON.decode(Problem.self, from: reply.body) {
      guard problem.slug == .userDeregistered else { return reply }
      problem.revocations = await notices(for: gone)
      return await replaced(reply, attempt, by: JSON.encode(problem))
    }
    guard var error = try? JSON.decode(OAuthError.self, from: reply.body),
      error.errorCode == Problem.Slug.userDeregistered.code
    else { return reply }
    error.revocations = await notices(for: gone)
    return await replaced(reply, attempt, by: JSON.encode(error))
  }

  /// Replaces the stored reply, so that a repetition of the attempt gets the same bytes.
  private func replaced(_ reply: StoredReply, _ attempt: PINAttempt, by body: [UInt8]) async -> StoredReply {
    do {
      try await store.write {
        try $0.replaceReply(attempt.key, of: attempt.clientID, to: attempt.requestHash, body: body)
      }
      return StoredReply(requestHash: reply.requestHash, status: reply.status, body: body)
    } catch { return reply }
  }

  private func notice(for profile: Profile, _ scope: RevocationNotice.Scope) async throws -> String? {
    // A profile that lost only its push enrollment still has its keys.
    let isCurrent = scope == .keys && profile.serverKey != nil
    guard let serverKey = isCurrent ? profile.serverKey : profile.formerServerKey,
      let bytes = isCurrent ? profile.certificate : profile.formerCertificate,
      let certificate = try? OpenPGPCertificate(parsing: bytes)
    else { return nil }
    let notice = RevocationNotice(
      iss: origin.issuer, clientID: profile.clientID.text, profileID: profile.id.text, scope: scope,
      layer: scope == .keys ? (isCurrent ? .push : .mobileAuth) : nil)
    return try await keyring.key(serverKey).seal(JSON.encode(notice), to: certificate).base64
  }
}
