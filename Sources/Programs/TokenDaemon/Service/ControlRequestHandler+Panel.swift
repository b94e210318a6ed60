// SPDX-License-Identifier: Apache-2.0
import Boards
import ControlProtocol
import DisplayText
import FrontPanel
import MobileAuth
import Secrets

extension ControlRequestHandler {
  /// Sends what is on the panel, and then each change, until the client disconnects.
  func watch(_ reply: @Sendable (any Encodable & Sendable) throws -> Void) async throws {
    for await change in service.shown.changes() { try reply(PanelChange(change, now: backends.environment.now)) }
  }
}

/// The LED and the simulated board.
extension ControlRequestHandler {
  /// Sends what the LED shows, and then each change, until the client disconnects.
  func followLED(_ reply: @Sendable (any Encodable & Sendable) throws -> Void) async throws {
    var shown: LEDStatus?
    for await led in board.indicator.changes().map(board.led(at:)) where shown != led {
      shown = led
      try reply(led)
    }
  }

  func followBoard(_ reply: @Sendable (any Encodable & Sendable) throws -> Void) async throws {
    _ = try board.simulatedButton
    for await output in board.indicator.changes() { try reply(board.state(at: output)) }
  }

  /// Keeps a button down until it is released or the client disconnects.
  func press(_ name: SimulatedButtonName, _ reply: @Sendable (any Encodable & Sendable) throws -> Void) async throws {
    let ignored = await ignored
    _ = try await press { button in
      _ = try await button.press(name == .approve ? .approve : .deny) { try reply(Done(ignored: ignored)) }
    }
  }

  /// Presses the simulated button.
  /// - Returns: why the press was ignored; nil if it may have had an effect.
  func press(_ gesture: (SimulatedButton) async throws -> Void) async throws -> String? {
    let (button, ignored) = (try board.simulatedButton, await ignored)
    do { try await gesture(button) } catch let error as SimulatedButton.PressError {
      throw CommandError(.refused, "\(error)")
    }
    return ignored
  }

  /// - Returns: why the press was no gesture; nil if it was one.
  func release(heldFor milliseconds: Int64) throws -> String? {
    guard (0...60_000).contains(milliseconds) else { throw CommandError(.usage, "a hold takes 0 to 60 seconds") }
    let timing = board.profile.timing
    let ending = try board.simulatedButton.release(
      heldFor: .milliseconds(milliseconds), limits: [timing.acceptHold, timing.reportHold])
    return switch ending {
    case .released: nil
    case .canceled: "the user held the button for a different time than the token has measured"
    case nil: "no button is down"
    }
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

extension ControlRequestHandler {
  /// Lets the simulated authenticator that is asked say something.
  /// - Returns: why that was ignored; nil if it was not.
  func simulate(_ answer: SimulatedAnswer) throws -> String? {
    guard let authenticators = board.simulatedAuthenticators else {
      throw CommandError(.usage, "this board has hardware; `simulate` is for the simulated board only")
    }
    let ignored = "no authenticator is asked"
    let event: DriverEvent
    switch answer {
    case .touch: return try authenticators.touch() ? nil : ignored
    case .badge(let name):
      guard name.utf8.count <= 64 else { throw CommandError(.usage, "the name of a badge has at most 64 bytes") }
      return try authenticators.insert(badge: name) ? nil : ignored
    case .finger(let name):
      guard name.utf8.count <= 64 else { throw CommandError(.usage, "the name of a finger has at most 64 bytes") }
      return authenticators.present(finger: name) ? nil : ignored
    case .noKey, .noBadge:
      authenticators.set(answer == .noKey ? .securityKey : .badge, isPresent: false)
      return nil
    case .data(let text):
      guard text.utf8.count <= AuthenticatorData.largest else {
        throw CommandError(.usage, "the data has at most \(AuthenticatorData.largest) bytes")
      }
      event = .data(AuthenticatorData(SecretBytes(copying: Array(text.utf8))))
    case .cancel(let reason): event = .canceled(reason.sanitized(atMost: 64))
    case .fallback: event = .fallback
    case .retry(let reason): event = .retry(reason.sanitized(atMost: 64))
    }
    return authenticators.perform(event) ? nil : ignored
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
