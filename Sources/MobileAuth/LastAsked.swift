import Synchronization

/// What the panel asked last. A change to something else must be seen: what looks the same in phase would be taken for
/// the same, and a PIN be typed for the wrong account.
final class LastAsked: Sendable {
  /// After this time nobody is still about to answer what was asked before.
  static let memory = Duration.seconds(10)

  private struct State {
    /// Nil for an errand, which is no request.
    var subject: TransactionID?
    var isThere = false
    /// Nil while it is being asked.
    var end: Moment?
  }

  private let state = Mutex(State())

  /// The panel is about to ask this.
  /// - Returns: whether something else was asked just before, and its end not shown.
  func begin(_ subject: TransactionID?, at now: Moment) -> Bool {
    state.withLock { state in
      let isRecent = state.isThere && state.end.map { now - $0 < Self.memory } ?? true
      let isOther = subject == nil || state.subject != subject
      state = State(subject: subject, isThere: true)
      return isRecent && isOther
    }
  }

  /// It is no longer asked, and the LED does not say how it ended.
  func end(at now: Moment) { state.withLock { $0.end = now } }

  /// Its end is shown.
  func forget() { state.withLock { $0 = State() } }
}
