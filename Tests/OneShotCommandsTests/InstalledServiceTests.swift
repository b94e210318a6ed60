// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ArgumentParser
import ControlProtocol
import Glibc
import MobileAuth
import Testing

@testable import OneShotCommands

private let unit = "etc/systemd/system/approval-token.service"
private let defaultState = ".local/state/approval-token"

/// A folder in place of `/`, and of a home.
private func makeRoot(withUnit: Bool) -> String {
  let root = "/tmp/installed-service-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
  for name in ["", "etc", "etc/systemd", "etc/systemd/system"] { mkdir("\(root)/\(name)", 0o700) }
  if withUnit { close(open("\(root)/\(unit)", O_CREAT | O_WRONLY, 0o600)) }
  return root
}

private func removeRoot(_ root: String) {
  let files = ["vault.sqlite3", "vault.sqlite3-shm", "vault.sqlite3-wal", "device-secret"]
  let folders = ["etc/systemd/system", "etc/systemd", "etc", defaultState, ".local/state", ".local", ""]
  for name in files.map({ "\(defaultState)/\($0)" }) + [unit] + folders { remove("\(root)/\(name)") }
}

/// Without variables that name the state directory. For a process of its own.
private func useHome(_ home: String) {
  for name in ["STATE_DIRECTORY", "XDG_STATE_HOME", "CREDENTIALS_DIRECTORY"] { unsetenv(name) }
  setenv("HOME", home, 1)
}

/// For a process of its own.
private func useOwnToken(beside root: String) throws {
  try InstalledService.$root.withValue(root) {
    let state = try Accounts.parse([]).state
    let enroll = try Enroll.parse(["-"])
    try state.prepareDirectory()
    let vault = "\(state.directory)/vault.sqlite3"
    close(open(vault, O_CREAT | O_WRONLY, 0o600))
    #expect(throws: CommandError.self) { try enroll.checkState() }
    #expect(throws: CommandError.self) { try state.requireChoice("") }
    remove(vault)
    _ = try state.openVault(creating: true)
    try enroll.checkState()
    try state.requireChoice("")
    #expect(try Accounts.parse([]).list().isEmpty)
    #expect(try Status.parse([]).withoutService().accounts == 0)
  }
}

/// Commands beside a service that is installed as a unit, and the default directory.
@Suite(.timeLimit(.minutes(5))) struct InstalledServiceTests {
  private func withRoot(withUnit: Bool = true, _ body: (String) throws -> Void) rethrows {
    let root = makeRoot(withUnit: withUnit)
    defer { removeRoot(root) }
    try InstalledService.$root.withValue(root) { try body(root) }
  }

  /// `enroll` made a vault with a device secret of its own beside a service that was not yet listening, which then
  /// refused it.
  @Test("The state directory of an installed service is recognized") func stateOfService() {
    withRoot(withUnit: false) { _ in #expect(!InstalledService.uses("/var/lib/approval-token")) }
    withRoot { _ in
      #expect(InstalledService.uses("/var/lib/approval-token"))
      #expect(InstalledService.uses("/var/lib/approval-token/"))
      #expect(!InstalledService.uses("/home/alice/.local/state/approval-token"))
    }
  }

  /// The removal of the package leaves the unit masked: as a link to `/dev/null`.
  @Test("A masked unit is no installed service, and a link to a unit is one") func maskedUnit() throws {
    try withRoot(withUnit: false) { root in
      try #require(symlink("/dev/null", "\(root)/\(unit)") == 0)
      #expect(!InstalledService.isInstalled)
      #expect(InstalledService.start(of: "/var/lib/approval-token") == "start `approval-token serve`")
      // That of the package stays if an administrator masks the unit.
      let folders = ["lib", "lib/systemd", "lib/systemd/system"]
      for name in folders { try #require(mkdir("\(root)/\(name)", 0o700) == 0) }
      let packaged = "\(root)/lib/systemd/system/approval-token.service"
      close(open(packaged, O_CREAT | O_WRONLY, 0o600))
      defer { for name in [packaged] + folders.reversed().map({ "\(root)/\($0)" }) { remove(name) } }
      #expect(!InstalledService.isInstalled)
      remove("\(root)/\(unit)")
      #expect(InstalledService.isInstalled)
    }
    try withRoot { root in
      try #require(rename("\(root)/\(unit)", "\(root)/etc/unit") == 0)
      defer { remove("\(root)/etc/unit") }
      try #require(symlink("../../unit", "\(root)/\(unit)") == 0)
      #expect(InstalledService.isInstalled)
    }
  }

  /// Fails if root enrolls a second device, or starts a second token, without the service's directory.
  @Test("Without --state, a command beside an installed service does not use the default directory")
  func withoutState() async {
    await #expect(processExitsWith: .success) {
      let root = makeRoot(withUnit: true)
      defer { removeRoot(root) }
      useHome(root)
      try await InstalledService.$root.withValue(root) {
        for words in [
          ["enroll", "-"], ["enroll", "--server", "https://x"], ["serve"], ["device"], ["accounts"], ["log"],
          ["doctor"], ["status"],
        ] {
          let command = try #require(try ApprovalTokenCommand.parseAsRoot(words) as? any OneShotCommand)
          await #expect(throws: ExitCode(64), "\(words)") { try await command.perform() }
        }
        let enroll = try Enroll.parse(["-"])
        #expect(throws: ExitCode(64)) { try enroll.run() }
        #expect {
          try enroll.checkState()
        } throws: {
          "\($0)".contains("`runuser -u approval-token -- approval-token enroll … --state /var/lib/approval-token`")
        }
        #expect(access("\(root)/.local", F_OK) != 0)
      }
    }
  }

  /// Fails if a user's own token stops working when the service is installed, too. An empty vault would become another
  /// token.
  @Test("A token that is in the default directory already is used beside an installed service") func ownToken() async {
    await #expect(processExitsWith: .success) {
      let root = makeRoot(withUnit: true)
      defer { removeRoot(root) }
      useHome(root)
      try useOwnToken(beside: root)
    }
  }

  @Test("With --state, a command beside an installed service uses the named directory") func withState() throws {
    try withRoot { root in try Enroll.parse(["-", "--state", root]).checkState() }
  }

  /// `approval-token serve` in its place would have neither its user nor its device secret.
  @Test("An installed service is started by the service manager") func start() {
    withRoot(withUnit: false) { _ in
      #expect(InstalledService.start(of: "/var/lib/approval-token") == "start `approval-token serve`")
    }
    withRoot { _ in
      #expect(InstalledService.start(of: "/var/lib/approval-token") == "run `systemctl start approval-token`")
    }
  }

  @Test("A command that finds no service names the directory of the installed one") func otherService() {
    withRoot { root in
      let error = #expect(throws: CommandError.self) {
        try ControlClient(path: "\(root)/control.sock").call(.status, ServiceStatus.self)
      }
      let text = error?.description ?? ""
      let installed =
        "the service that is installed here uses another directory: `runuser -u approval-token -- approval-token … "
        + "--state /var/lib/approval-token`; for this one, start `approval-token serve`"
      #expect(text.contains("is not running") && text.contains("): " + installed), "\(text)")
    }
  }

  /// Fails if the first start of a user who has no `~/.local/state` ends with an error.
  @Test("The default directory and the missing ones above it are made, for their owner only")
  func defaultDirectory() async {
    await #expect(processExitsWith: .success) {
      let root = makeRoot(withUnit: false)
      defer { removeRoot(root) }
      useHome(root)
      umask(0)
      _ = try Enroll.parse(["-"]).state.openVault(creating: true)
      for name in [".local", ".local/state", defaultState] {
        var status = stat()
        #expect(stat("\(root)/\(name)", &status) == 0 && status.st_mode & 0o7777 == 0o700, "\(name)")
      }
    }
  }

  @Test("A directory that the user names is made only in an existing one") func namedDirectory() throws {
    try withRoot(withUnit: false) { root in
      let state = try Enroll.parse(["-", "--state", "\(root)/a/b/c"]).state
      #expect(
        throws: StateStoreError.io(call: "mkdir \(root)/a/b/c", reason: "the directory \(root)/a does not exist")
      ) { try state.openVault(creating: true) }
    }
  }
}
