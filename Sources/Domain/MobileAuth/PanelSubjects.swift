// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The requests and panel tasks that the panel shows: the last one, the next one that the user chose, and the one that
/// is shown now.
package struct PanelSubjects: Sendable {
  /// The subject that the panel shows or showed last.
  package let last = LastPrompt()
  let choice = PanelChoice()
  let turns = PanelTurns()
  /// The verified request that the panel shows now.
  package let shown = ShownRequest()
  /// Whether the user has begun to answer that request.
  package let startedAnswer = StartedAnswer()
  /// The answer that is on its way to its server.
  let sentAnswer = SentAnswer()
  /// What the panel shows instead of "must be enrolled".
  package let enrollment = EnrollmentIndication()
}

/// Where the enrollment stands, or why the last one failed, while there is no account.
package final class EnrollmentIndication: Sendable {
  private let indication = Mutex(Indication?.none)

  /// - Parameter indication: nil for "must be enrolled". Raise `Inbox.changes` after it.
  package func set(_ indication: Indication?) { self.indication.withLock { $0 = indication } }

  var current: Indication? { indication.withLock(\.self) }
}

/// The server to which the answer on the panel is being sent.
final class SentAnswer: Sendable {
  private let server = Mutex(TokenServerID?.none)

  func begin(to server: TokenServerID) { self.server.withLock { $0 = server } }

  /// The panel has the outcome, or does not wait for it any longer.
  func end() { server.withLock { $0 = nil } }

  func isUnderway(to server: TokenServerID) -> Bool { self.server.withLock { $0 == server } }
}
