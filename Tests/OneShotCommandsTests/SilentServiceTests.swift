// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ArgumentParser
import ControlProtocol
import Glibc
import Testing
import UnixSockets

@testable import OneShotCommands

/// Commands beside a service that accepts connections and never answers.
@Suite(.timeLimit(.minutes(5))) struct SilentServiceTests {
  private func withSilentService(_ body: (StateOption) throws -> Void) throws {
    var template = Array("/tmp/silent-service-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    let state = try #require(try Doctor.parseAsRoot(["--state", folder]) as? Doctor).state
    defer {
      unlink(state.controlSocket)
      remove(folder)
    }
    let socket = try UnixSocket.listening(at: state.controlSocket)
    try ControlClient.$patience.withValue(1) { try body(state) }
    extendLifetime(socket)
  }

  @Test(
    "A command that waits for neither a user nor a server ends with an error",
    arguments: [["pending"], ["show", "x"], ["events"], ["push", "/dev/null"], ["simulate", "led"], ["status"]])
  func commands(words: [String]) throws {
    try withSilentService { state in
      let error = #expect(throws: ExitCode.self) {
        var command = try ApprovalTokenCommand.parseAsRoot(words + ["--state", state.directory])
        try command.run()
      }
      #expect(error?.rawValue == 69)
    }
  }

  @Test("A command that has changed an account does not wait for the service without end") func reload() throws {
    try withSilentService { requestReload($0) }
  }
}
