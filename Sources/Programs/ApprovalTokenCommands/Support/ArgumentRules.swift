// SPDX-License-Identifier: Apache-2.0

/// Rules for arguments that depend on the kinds of servers. Only the daemon's program knows the kinds: `approval-token`
/// leaves commands with such arguments to it.
package protocol ArgumentRules: Sendable {
  /// Whether the enrollment URI contains a secret that stays valid after the enrollment.
  func carriesLastingSecret(_ uri: String) -> Bool
  /// Returns the rule that the text violates; nil if it can be a push topic.
  func rule(brokenByMailbox text: String) -> String?
}

package enum KindsOfServers {
  /// Applied while arguments are parsed; nil in `approval-token`.
  @TaskLocal package static var rules: (any ArgumentRules)?
}
