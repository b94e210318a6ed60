// SPDX-License-Identifier: Apache-2.0
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
  package let answer = StartedAnswer()
}
