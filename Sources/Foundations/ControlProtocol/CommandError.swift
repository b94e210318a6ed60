// SPDX-License-Identifier: Apache-2.0

/// A command's error: a message for the user, and the exit code of sysexits(3).
package struct CommandError: Error, CustomStringConvertible {
  package enum Code: Int32, Sendable {
    case usage = 64
    case badData = 65
    case unavailable = 69
    /// Another service uses the state directory.
    case inUse = 75
    case refused = 77
  }

  package let code: Code
  package let description: String
  /// Error number for programs, printed with `--json` only: of the table in docs/handling-loop.md, or of PingAM's
  /// vendor (docs/pingam.md). Nil for errors without a number.
  package let number: Int?
  /// The result of the token server's script that refused an authenticator; nil if none was asked.
  package let info: ScriptInfo?
  /// Why an authenticator canceled; nil for other errors.
  package let underlyingError: String?
  /// No service runs: nothing has been done, and a command that works without the service may continue.
  package let isServiceMissing: Bool

  package init(
    _ code: Code, _ description: String, number: Int? = nil, info: ScriptInfo? = nil, underlyingError: String? = nil,
    isServiceMissing: Bool = false
  ) {
    self.code = code
    self.description = description
    self.number = number
    self.info = info
    self.underlyingError = underlyingError
    self.isServiceMissing = isServiceMissing
  }
}
