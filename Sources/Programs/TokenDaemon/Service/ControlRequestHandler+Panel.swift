// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import MobileAuth

extension ControlRequestHandler {
  /// Sends what is on the panel, and then each change, until the client disconnects.
  func watch(_ reply: @Sendable (any Encodable & Sendable) throws -> Void) async throws {
    for await change in service.shown.changes() { try reply(PanelChange(change, now: backends.environment.now)) }
  }
}

extension ControlRequestHandler {
  /// Shows a pending request as soon as the user does not touch the panel.
  func show(_ name: String) throws -> Done {
    guard let transaction = TransactionID(name),
      let request = service.pending.first(where: { $0.transaction == transaction })
    else {
      throw CommandError(.usage, "no pending request \"\(name.prefix(64))\"; see `approval-token pending`")
    }
    if let lock = request.blockedBy?.lock { throw CommandError(.refused, "the account \(request.account) is \(lock)") }
    service.choose(transaction)
    return Done()
  }
}

extension PanelChange {
  fileprivate init(_ change: ShownRequest.Change, now: MonotonicInstant) {
    switch change {
    case .nothing: self = .idle
    case .ended(let transaction, let reason): self.init(ended: transaction.text, reason.rawValue)
    case .shown(let request):
      var summary = PendingSummary(request.pending, request, now: now)
      summary.isOnPanel = true
      self.init(shown: summary)
    }
  }
}

extension PendingSummary {
  /// - Parameters:
  ///   - request: as in the last list, which is not signed.
  ///   - shown: the request on the panel. If it is this one, the texts are those that were compared with the signed
  ///     ones.
  init(_ request: PendingMobileAuthRequest, _ shown: MobileAuthRequest?, now: MonotonicInstant) {
    guard let shown, shown.pending.transaction == request.transaction else {
      self.init(request, now: now)
      return
    }
    self.init(shown.pending, now: now)
    expiresInSeconds = max(0, (request.deadline - now).components.seconds)
    locked = request.blockedBy?.lock
    verified = shown.contents.texts.map { VerifiedSummary($0) }
  }
}

extension VerifiedSummary {
  init(_ texts: VerifiedTexts) {
    self.init(
      signature: texts.signature.rawValue, type: texts.type, message: texts.message, pushMessage: texts.pushMessage,
      sha256: texts.digest)
  }
}
