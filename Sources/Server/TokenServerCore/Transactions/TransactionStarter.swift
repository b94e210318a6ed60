// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Logging
import ReferenceProtocol

/// A started transaction, for the portal.
package struct StartedTransaction: Sendable {
  package let transaction: Transaction
  package let deviceName: String
}

/// Why a transaction cannot be started.
package enum StartError: Error, Equatable {
  /// The user is unknown, or has no device that can be asked this way.
  case notPossible
  /// The device has too many open requests of this user.
  case tooManyOpen
  /// The user answered "not me" recently.
  case onHold(remaining: Duration)
}

/// Starts transactions: stores the transaction and notifies the device.
package struct TransactionStarter: Sendable {
  package let store: any RecordStore
  package let origin: Origin
  package let clock: ServerClock
  package let announcer: any Announcer
  package let expiry: any ExpirySchedule
  package let configuration: ServerConfiguration
  private let usableNow: @Sendable () -> ServerConfiguration

  /// - Parameter usable: the configuration without the authenticators that cannot be verified now.
  package init(
    store: any RecordStore, origin: Origin, clock: ServerClock, announcer: any Announcer, expiry: any ExpirySchedule,
    configuration: ServerConfiguration, usable: @escaping @Sendable () -> ServerConfiguration
  ) {
    self.store = store
    self.origin = origin
    self.clock = clock
    self.announcer = announcer
    self.expiry = expiry
    self.configuration = configuration
    usableNow = usable
  }

  /// What requests can be sent with now.
  package var usable: ServerConfiguration { usableNow() }

  private enum Outcome: Sendable {
    case started(StartedTransaction, Effects)
    case refused(StartError)
  }

  package func start(_ order: StartRequest) async throws -> StartedTransaction {
    let usable = usable
    switch try await store.write({ try start(order, usable, in: $0) }) {
    case .refused(let error): throw error
    case .started(let started, let effects):
      let transaction = started.transaction
      expiry.expect(at: transaction.expiresAt)
      announcer.announce(effects)
      announcer.log.info(
        "transaction \(transaction.id): \(transaction.type) for \(transaction.userID) on \(transaction.clientID)")
      return started
    }
  }

  private func start(
    _ order: StartRequest, _ usable: ServerConfiguration, in records: any ServerRecords
  ) throws -> Outcome {
    guard let (profile, plan) = choose(order, from: try records.profiles(of: order.userID), usable),
      let deviceName = try records.deviceName(profile.clientID)
    else {
      return .refused(.notPossible)
    }
    let now = clock.now()
    if let until = try records.holdEnd(of: order.userID, now: now) {
      return .refused(.onHold(remaining: until - now))
    }
    let replaced = try superseded(by: order, on: profile.clientID, records, now: now)
    let open = try records.openTransactionCount(of: order.userID, on: profile.clientID, now: now)
    guard open - replaced.count < configuration.limits.openRequestsPerDevice else { return .refused(.tooManyOpen) }
    var effects = Effects()
    for transaction in replaced {
      try records.end(transaction, .superseded, now: now).map { effects.add($0) }
    }
    let transaction = transaction(for: order, profile, plan, now: now)
    try records.insert(transaction)
    if order.type.deliveryRequired, try !isReached(profile.clientID, records, now: now) {
      try records.end(transaction, .notDelivered, now: now).map { effects.add($0) }
    } else {
      effects.notify(profile.clientID, DeviceEvent(.request, transactionID: transaction.id, profileID: profile.id.text))
    }
    return .started(StartedTransaction(transaction: transaction, deviceName: deviceName), effects)
  }

  /// The user's open transactions on the device that end when this one starts.
  private func superseded(
    by order: StartRequest, on device: ClientID, _ records: any ServerRecords, now: Timestamp
  ) throws -> [Transaction] {
    guard order.type.supersede else { return [] }
    return try records.openTransactions(of: device, now: now).filter {
      $0.userID == order.userID && $0.type == order.type.name
    }
  }

  /// Whether the device is expected to receive hints immediately, from whichever server.
  private func isReached(_ device: ClientID, _ records: any ServerRecords, now: Timestamp) throws -> Bool {
    if announcer.reaches(device) { return true }
    if configuration.mqtt != nil, try records.hasMailbox(device) { return true }
    return try records.isConnected(device, now: now)
  }

  /// The first of the profiles that the request can be sent to.
  private func choose(
    _ order: StartRequest, from profiles: [Profile], _ usable: ServerConfiguration
  ) -> (Profile, RequestPlan)? {
    for profile in profiles {
      if case .device(let clientID) = order.target, profile.clientID != clientID { continue }
      if let plan = profile.plan(for: order.type, usable) { return (profile, plan) }
    }
    return nil
  }

  private func transaction(
    for order: StartRequest, _ profile: Profile, _ plan: RequestPlan, now: Timestamp
  ) -> Transaction {
    let lifetime = Duration.seconds(order.type.requestExpiresIn)
    var request = ApprovalRequest(
      iss: origin.issuer, clientID: profile.clientID.text, profileID: profile.id.text, transactionID: Random.uuid(),
      type: order.type.name, method: plan.method, message: order.secureMessage, pushMessage: order.message,
      nonce: Random.bytes(32).base64URL, sentAtMs: now.milliseconds, expiresInMs: lifetime.milliseconds)
    request.signedReceipt = true
    request.authenticator = plan.authenticator
    request.alternatives = plan.alternatives.isEmpty ? nil : plan.alternatives
    request.readBack = order.readBack
    if plan.hasFallback { request.fallbacks = [ApprovalRequest.Method.pushWithPIN.rawValue] }
    if plan.method != .push { request.attempt = 1 }
    if plan.method == .pushWithPIN || plan.hasFallback {
      request.state(profile.knowledge?.counts(of: profile.id, limit: configuration.application.maxPINAttempts))
    }
    var transaction = Transaction(
      id: request.transactionID, userID: order.userID, clientID: profile.clientID, profileID: profile.id,
      type: request.type, method: request.method, callbackURI: order.callbackURI, message: order.message,
      nonce: request.nonce, request: JSON.encode(request), callbackOnExpiry: order.type.callbackOnExpiry,
      createdAt: now, expiresAt: now + lifetime)
    (transaction.authenticator, transaction.hasFallback) = (plan.authenticator, plan.hasFallback)
    transaction.portal = order.portal
    return transaction
  }
}
