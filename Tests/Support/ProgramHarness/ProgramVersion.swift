// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Both programs of one version.
package struct ProgramVersion: Sendable, Equatable, CustomStringConvertible {
  /// A commit, or "present".
  package let name: String
  package let token: String
  package let server: String

  package var description: String { name }

  /// The programs under test.
  package static let present = ProgramVersion(name: "present", token: Program.token, server: Program.server)

  /// The programs in `$COMPATIBILITY_PROGRAMS`, which `scripts/compatibility build` prints: `COMMIT=DIRECTORY`, several
  /// of them separated by colons. Empty in other runs.
  package static let earlier: [ProgramVersion] = {
    let value = ProcessInfo.processInfo.environment["COMPATIBILITY_PROGRAMS"] ?? ""
    return value.split(separator: ":").compactMap { entry in
      let parts = entry.split(separator: "=", maxSplits: 1).map(String.init)
      guard parts.count == 2 else { return nil }
      return ProgramVersion(
        name: parts[0], token: "\(parts[1])/approval-token", server: "\(parts[1])/token-server")
    }
  }()
}
