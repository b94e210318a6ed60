// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The subject that the panel showed last. A change of subject must be visible: two requests that look the same could
/// be mistaken for each other, and the user could type a PIN for the wrong account. A request that is fetched again
/// after a wrong PIN is another subject if the token server has signed other texts.
package final class LastPrompt: Sendable {
  /// After this time no user is still about to answer the earlier subject.
  static let memory = Duration.seconds(10)

  /// What of a request must not change unseen.
  package struct Subject: Sendable, Equatable {
    fileprivate let transaction: TransactionID
    private let account: AccountID?
    private let texts: VerifiedTexts?

    package init(_ contents: VerifiedContents) {
      (transaction, account, texts) = (contents.transaction, contents.account, contents.texts)
    }
  }

  private struct State {
    /// Nil for a panel task.
    var subject: Subject?
    var isThere = false
    /// Nil while the subject is shown.
    var end: MonotonicInstant?
  }

  private let state = Mutex(State())

  /// Records that the panel is about to show this subject.
  /// - Returns: whether another subject was shown recently without an indication of its end, or the same request was
  ///   shown last, with other texts.
  func begin(_ subject: Subject?, at now: MonotonicInstant) -> Bool {
    state.withLock { state in
      let isRecent = state.isThere && state.end.map { now - $0 < Self.memory } ?? true
      let isOther = subject == nil || state.subject != subject
      let isChanged = isOther && subject != nil && state.subject?.transaction == subject?.transaction
      state = State(subject: subject, isThere: true)
      return isRecent && isOther || isChanged
    }
  }

  /// Records that the subject is no longer shown and the LED did not show how it ended.
  func end(at now: MonotonicInstant) { state.withLock { $0.end = now } }

  /// Forgets the subject, because the LED has shown how it ended.
  func forget() { state.withLock { $0 = State() } }
}
