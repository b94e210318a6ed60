// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Cryptography
import Glibc
import MobileAuth
import ReferenceProtocol
import Vault

struct StateOption: ParsableArguments {
  @Option(
    name: .customLong("state"),
    help: ArgumentHelp(
      "Directory with accounts, keys and the audit chain.",
      discussion: "Default: $STATE_DIRECTORY, else $XDG_STATE_HOME/approval-token, else ~/.local/state/approval-token.",
      valueName: "dir"),
    completion: .directory)
  var chosen: String?

  var directory: String { chosen ?? Self.defaultDirectory }

  private static var defaultDirectory: String {
    if let service = environment("STATE_DIRECTORY") { return service }
    if let state = environment("XDG_STATE_HOME") { return state + "/approval-token" }
    return (environment("HOME") ?? "/root") + "/.local/state/approval-token"
  }

  var hasVault: Bool { access(directory + "/vault.sqlite3", F_OK) == 0 }

  var controlSocket: String { directory + "/control.sock" }

  func deviceSecret() throws -> DeviceSecret {
    try DeviceSecret.load(stateDirectory: directory, credentialsDirectory: environment("CREDENTIALS_DIRECTORY"))
  }

  /// - Parameters:
  ///   - creating: whether a missing directory is created, with a device secret.
  ///   - readOnly: whether all writes are rejected.
  func openVault(creating: Bool, readOnly: Bool = false) throws -> Vault {
    if !creating, !hasVault {
      throw CommandError(
        .badData, "no token state in \(directory): run `approval-token enroll` first, or choose another --state")
    }
    return try Vault.open(
      directory: directory, deviceSecret: deviceSecret(), upgrade: Backends.upgraded, readOnly: readOnly)
  }
}

struct JSONOption: ParsableArguments {
  @Flag(name: .customLong("json"), help: "Print the result as JSON.")
  var isWanted = false

  /// Prints `value` as JSON, or the text that `text` makes from it.
  func print<Value: Encodable>(_ value: Value, text: (Value) -> String) {
    let output =
      isWanted ? String(decoding: JSON.encode(value), as: UTF8.self).escapedForDisplay : text(value).sanitizedLines
    if !output.isEmpty { Swift.print(output) }
  }
}

func environment(_ name: String) -> String? {
  getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
}

/// A uniform random number in 0..<1, for jitter.
@Sendable func uniformFraction() -> Double {
  Double(Random.bytes(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }) / 4_294_967_296
}
