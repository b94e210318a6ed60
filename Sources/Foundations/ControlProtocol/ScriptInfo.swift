// SPDX-License-Identifier: Apache-2.0

/// The result of the token server's script for a custom authenticator.
package struct ScriptInfo: Codable, Equatable, Sendable {
  package var status: Int
  /// Its meaning is the script's: not sanitized.
  package var data: String

  package init(status: Int, data: String) { (self.status, self.data) = (status, data) }
}
