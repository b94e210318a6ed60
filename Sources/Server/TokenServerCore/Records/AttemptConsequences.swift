// SPDX-License-Identifier: Apache-2.0

/// The consequences of a verified attempt, stored in the same transaction.
package struct AttemptConsequences: Sendable {
  /// The response to this attempt and its repetitions; nil if its purpose is gone and no response has to be repeated.
  package var reply: StoredReply?
  package var effects = Effects()

  package init(reply: StoredReply? = nil, effects: Effects = Effects()) {
    self.reply = reply
    self.effects = effects
  }
}
