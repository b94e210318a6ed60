// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Hummingbird
import Logging
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// `POST /profiles/{pid}/pin`: the end of an activation. The device proves that it can use its refresh token; from then
/// on the PIN that encrypts the refresh token is required.
struct PINRoutes: Sendable {
  let gate: DeviceGate
  let pins: PINAttemptVerifier
  let log: DeviceLog

  func add(to router: Router<ServerContext>) {
    router.post("/device/v1/profiles/:pid/pin") { try await activate($0, $1) }
  }

  private func activate(_ request: Request, _ context: ServerContext) async throws -> Response {
    let caller = try await gate.admit(request)
    let profileID = ProfileID(try context.path("pid"))
    let audience = gate.origin.issuer + request.uri.path
    let text = try JSON.decode(PINActivation.self, from: await request.bytes()).assertion
    return try await pins.serialized(with: profileID, on: caller.clientID) {
      let profile = try await caller.profile(profileID, in: gate.store)
      try caller.requireUser(profileID)
      try await activate(profile, text, audience: audience)
      return .noContent
    }
  }

  private func activate(_ profile: Profile, _ text: String, audience: String) async throws {
    guard let knowledge = profile.knowledge else {
      throw DeviceAPIError(.actionNotAllowed, "the profile was activated without a PIN")
    }
    let hashes = gate.hasher.hashes(text, for: .knowledgeAssertion)
    guard !knowledge.isActive else {
      // Accept only a repetition of the same assertion: verifying another one would be an uncounted PIN attempt.
      guard let activation = knowledge.activation, hashes.contains(where: { constantTimeEqual(activation, $0) }) else {
        throw DeviceAPIError(.actionNotAllowed, "the profile has a PIN already")
      }
      return
    }
    guard !knowledge.hasExpired(at: gate.clock.now()) else {
      throw DeviceAPIError(.userDeregistered, gone: Gone(clientID: profile.clientID, profileID: profile.id))
    }
    guard let nonce = knowledge.nonce else {
      throw DeviceAPIError(.actionNotAllowed, "the refresh token was already tried; activate again for another one")
    }
    let assertion: KnowledgeAssertion
    do {
      assertion = try KnowledgeAssertion(
        parsing: text, clientID: profile.clientID.text, profileID: profile.id.text, audience: audience,
        now: gate.clock.nowSeconds, nonce: nonce)
    } catch { throw DeviceAPIError(error) }
    guard assertion.isSigned(by: knowledge.publicKey) else {
      try await gate.store.write { try $0.spend(nonce, of: profile) }
      log.about(profile.clientID).notice(
        "profile \(profile.id) on device \(profile.clientID): activated with another refresh token")
      throw DeviceAPIError(.answerInvalid, "the assertion is not made with the refresh token")
    }
    guard try await gate.store.write({ try $0.activateKnowledge(of: profile, nonce: nonce, activation: hashes[0]) })
    else {
      throw DeviceAPIError(.actionNotAllowed, "another refresh token was made meanwhile")
    }
    log.about(profile.clientID).info("profile \(profile.id) on device \(profile.clientID) has a PIN")
  }
}
