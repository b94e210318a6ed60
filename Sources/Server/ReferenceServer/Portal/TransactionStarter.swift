// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Logging
import ReferenceProtocol

/// `POST …/authenticate/user`: validates the portal's request, stores the transaction and notifies the device.
struct TransactionStarter: Sendable {
  let store: Store
  let origin: Origin
  let clock: ServerClock
  let announcer: Announcer
  let expiry: ExpiryTimer
  let configuration: ServerConfiguration

  private var settings: ServerConfiguration.MobileAuthentication { configuration.mobileAuthentication }

  private enum Outcome: Sendable {
    case started(Transaction, deviceName: String, Effects)
    case refused(ResponseError)
  }

  /// - Parameter device: selects the device: by its id (version 4), or the only one (version 3).
  func start(_ form: Form, device: @escaping @Sendable ([Profile]) -> Profile?) async throws -> PortalBody.Started {
    let order = try check(form)
    let outcome = try await store.write { [self] database -> Outcome in
      let profiles = try database.profiles(of: order.userID).filter { $0.canBeAsked(by: order.type.method) }
      guard let profile = device(profiles), let target = try database.device(profile.clientID) else {
        return .refused(.notPossible)
      }
      let nowMs = clock.nowMs()
      let open = try database.openTransactionCount(of: order.userID, on: profile.clientID, nowMs: nowMs)
      guard open < configuration.limits.openRequestsPerDevice else { return .refused(.temporarilyUnavailable) }
      if let until = try database.holdEnd(of: order.userID, nowMs: nowMs) {
        return .refused(.heldOff(milliseconds: until - nowMs))
      }
      var effects = Effects()
      if order.type.supersede {
        effects = try database.supersede(
          userID: order.userID, type: order.type.name, on: profile.clientID, nowMs: nowMs)
      }
      let transaction = transaction(for: order, profile, nowMs: nowMs)
      try database.insert(transaction)
      if order.type.deliveryRequired, !announcer.reaches(profile.clientID) {
        try database.end(transaction, .notDelivered, nowMs: nowMs).map { effects.add($0) }
      } else {
        effects.notify(
          profile.clientID, DeviceEvent(.request, transactionID: transaction.id, profileID: profile.id))
      }
      return .started(transaction, deviceName: target.name, effects)
    }
    switch outcome {
    case .refused(let refusal): throw refusal
    case .started(let transaction, let deviceName, let effects):
      expiry.expect(atMs: transaction.expiresAtMs)
      announcer.announce(effects)
      announcer.log.info(
        "transaction \(transaction.id): \(transaction.type) for \(transaction.userID) on \(transaction.clientID)")
      return PortalBody.Started(
        transactionID: transaction.id, authMethod: transaction.method.rawValue,
        timeToLive: transaction.expiresAtMs - transaction.createdAtMs,
        device: .init(name: deviceName, platform: settings.portalPlatformAlias))
    }
  }

  private func check(_ form: Form) throws(ResponseError) -> StartOrder {
    do { return try StartOrder(form, configuration) } catch { throw ResponseError(error) }
  }

  private func transaction(for order: StartOrder, _ profile: Profile, nowMs: Int64) -> Transaction {
    let lifetimeMs = Int64(order.type.requestExpiresIn) * 1000
    var request = ApprovalRequest(
      iss: origin.issuer, clientID: profile.clientID, profileID: profile.id, transactionID: Random.uuid(),
      type: order.type.name, method: order.type.method, message: order.secureMessage, pushMessage: order.message,
      nonce: Random.bytes(32).base64URL, sentAtMs: nowMs, expiresInMs: lifetimeMs)
    request.signedReceipt = true
    if order.type.method == .pushWithPIN {
      request.attempt = 1
      request.state(profile.knowledge?.counts(of: profile.id, limit: configuration.application.maxPINAttempts))
    }
    return Transaction(
      id: request.transactionID, userID: order.userID, clientID: profile.clientID, profileID: profile.id,
      type: request.type, method: request.method, callbackURI: order.callbackURI, message: order.message,
      nonce: request.nonce, request: JSON.encode(request), callbackOnExpiry: order.type.callbackOnExpiry,
      createdAtMs: nowMs, expiresAtMs: nowMs + lifetimeMs)
  }
}
