// SPDX-License-Identifier: Apache-2.0

/// What programs that follow the token are notified of.
extension Handler {
  func report(
    _ event: AuthenticationStep.Event, _ pending: PendingMobileAuthRequest, authenticator: String? = nil
  ) {
    environment.report(
      .step(AuthenticationStep(event, of: pending.account, pending.transaction, authenticator: authenticator)))
  }

  /// Reports what the panel asks for next.
  /// - Parameter failure: why the previous entry did not count.
  func reportChallenge(
    of request: MobileAuthRequest, _ progress: EntryProgress, after failure: AuthenticationStep.Failure?
  ) {
    let challenge = request.contents.challenge
    let summary: ChallengeSummary
    var authenticator: String?
    if progress.wantedReadBack(request.contents) != nil {
      return report(.challenged(.request, ChallengeSummary(.readBack), after: failure), request.pending)
    }
    switch challenge {
    case .confirmation: summary = ChallengeSummary(.confirmation)
    case .pin(let pin): summary = ChallengeSummary(.pin, counts: pin.counts)
    case .choice(let choice):
      let pin = progress.chosen == nil ? nil : choice.pin
      summary =
        pin.map { ChallengeSummary(.pin, counts: $0.counts) } ?? ChallengeSummary(.choice, counts: choice.counts)
    case .custom(let custom):
      if let pin = custom.fallback, progress.isFallback {
        summary = ChallengeSummary(.pin, counts: pin.counts)
      } else if progress.isOver {
        summary = ChallengeSummary(.denialOnly)
      } else {
        let sources = custom.code.map { [$0] } ?? progress.askedSources(of: custom)
        let kind: ChallengeSummary.Kind =
          progress.wantsHold(custom) ? .confirmation : sources.first?.kind == .biometric ? .biometric : .custom
        summary = ChallengeSummary(
          kind, alternatives: sources.dropFirst().map(\.authenticator), takesPIN: custom.fallback != nil)
        authenticator = sources.first?.authenticator
      }
    case .impossible: summary = ChallengeSummary(.denialOnly)
    }
    if summary.kind == .pin { authenticator = Authenticator.pinIdentifier }
    report(.challenged(.request, summary, after: failure), request.pending, authenticator: authenticator)
  }
}
