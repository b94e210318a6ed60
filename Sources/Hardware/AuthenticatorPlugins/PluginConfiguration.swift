// SPDX-License-Identifier: Apache-2.0
import MobileAuth
package import TOMLSyntax

/// One file of the folder `authenticators.d`: a program that produces the data of an authenticator.
///
/// ```toml
/// authenticator = "badge"                 # as the token server's [[authenticator]] calls it
/// socket = "/run/approval-token/badge"    # a program behind a Unix socket, of its own user
/// # command = ["/opt/badge/plug-in"]      # instead: a program of this service's user
/// kind = "custom"                         # "biometric" for a fingerprint reader
/// time_limit_seconds = 60                 # 1 to 120
/// hold = false                            # whether the button must be held before the program is asked
/// ```
package struct PluginConfiguration: Equatable, Sendable {
  package enum Program: Equatable, Sendable {
    /// Listens at the path; each connection is one use.
    case socket(String)
    /// The absolute path of the program, and its arguments. It is started for each use.
    case command([String])
  }

  /// What the program's data is for.
  package enum Kind: String, CaseIterable, Sendable {
    /// For the server's script.
    case custom
    /// For this token alone: whether a finger matches.
    case biometric
  }

  package var authenticator: String
  package var kind = Kind.custom
  package var program: Program
  package var timeLimit = Duration.seconds(60)
  package var needsHold = false

  package init(authenticator: String, program: Program) {
    self.authenticator = authenticator
    self.program = program
  }

  /// The maximum number of bytes of a path or an argument.
  private static let longestArgument = 4096

  package init(_ reader: inout TableReader) throws(TableReader.TableError) {
    authenticator = try reader.text("authenticator")
    guard Authenticator.isIdentifier(authenticator), authenticator != Authenticator.pinIdentifier else {
      throw reader.refusal("authenticator", "must be an identifier of the token server's authenticators")
    }
    let socket = try reader.optionalText("socket")
    let command = reader.has("command") ? try reader.texts("command") : nil
    switch (socket, command) {
    case (let path?, nil):
      // The size of `sun_path`, with a zero at its end.
      guard path.hasPrefix("/"), path.utf8.count < 108, !path.contains("\0") else {
        throw reader.refusal("socket", "must be an absolute path of at most 107 bytes")
      }
      program = .socket(path)
    case (nil, let command?):
      guard command[0].hasPrefix("/"), command.count <= 32,
        command.allSatisfy({ $0.utf8.count <= Self.longestArgument && !$0.contains("\0") })
      else { throw reader.refusal("command", "must be an absolute path and at most 31 arguments") }
      program = .command(command)
    default: throw reader.refusal("socket", "or \"command\" must be there, and not both")
    }
    kind = try reader.choice("kind", of: Kind.self, default: .custom)
    try reader.duration("time_limit_seconds", 1...120, &timeLimit)
    needsHold = try reader.flag("hold", default: false)
    try reader.finish()
  }
}
