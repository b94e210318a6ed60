// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ArgumentParser
import Glibc
import MobileAuth
import SQLite
import Testing

@testable import OneShotCommands

/// A system that is on trial after an update.
@Suite("A trial after an update", .timeLimit(.minutes(5))) struct TrialTests {
  /// Fails if a command would migrate the vault although the board may go back to the former system.
  @Test("As long as its file exists, a vault that the former system must read is not migrated") func trialFile() throws
  {
    var template = Array("/tmp/trial-tests-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    defer {
      for name in ["vault.sqlite3", "vault.sqlite3-shm", "vault.sqlite3-wal", "device-secret", "trial", ""] {
        remove("\(folder)/\(name)")
      }
    }
    let state = try #require(try Doctor.parseAsRoot(["--state", folder]) as? Doctor).state
    _ = try state.openVault(creating: true, trialFile: "\(folder)/trial")
    let vault = try Connection(path: "\(folder)/vault.sqlite3")
    try vault.execute("PRAGMA user_version = 7")
    try #require(mknod("\(folder)/trial", S_IFREG | 0o600, 0) == 0)
    #expect(throws: StateStoreError.olderFormat(7, known: 8)) {
      try state.openVault(creating: false, trialFile: "\(folder)/trial")
    }
    #expect(try vault.formatVersion() == 7)
    remove("\(folder)/trial")
    _ = try state.openVault(creating: false, trialFile: "\(folder)/trial")
    #expect(try vault.formatVersion() == 8)
  }
}
