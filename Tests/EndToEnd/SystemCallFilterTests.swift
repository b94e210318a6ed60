// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import ProgramHarness
import Testing

extension EndToEnd {
  /// Both processes under the system call filters of their units in `packaging/debian`.
  @Suite struct SystemCallFilters {
    @Test("The filters permit all that the two processes do") func permitsAll() async throws {
      try await withFilter { filter in
        try await withPINScene(isSplit: true, launcher: filter.launcher) { fixture in
          let token = fixture.token
          try await fixture.approve()
          let denied = try await fixture.ask()
          try await token.answer(denied, with: .double)
          #expect(try await fixture.settled(denied).hasPrefix("denied"))
          try await fixture.usePINThroughOutageAndRestart()
          try await fixture.approve()
          #expect(try token.running.isRunning)
          #expect(try token.network.isRunning)
        }
      }
    }

    @Test("A forbidden call ends the network process, and nothing else") func endsNetworkProcess() async throws {
      try await withFilteredScene { fixture, filter in
        let token = fixture.token
        let device = try token.running
        try await token.network.kill9()
        // Used first when a server is connected to, which can be before the network process is ready.
        try filter.forbid("network getsockopt")
        try? await token.startNetwork()
        let network = try token.network
        #expect(try await network.exit() == .signal(SIGSYS))
        try await token.shows("idle, not connected")
        #expect(device.isRunning)
        try filter.forbid("")
        let mark = try token.log.mark
        try await token.startNetwork()
        try await token.log.line(with: "] connected to", from: mark)
        try await fixture.approve()
      }
    }

    @Test("A forbidden call ends the device process, and nothing else") func endsDeviceProcess() async throws {
      try await withFilteredScene { fixture, filter in
        let token = fixture.token
        try await token.stop()
        let transaction = try await fixture.ask()
        // Used first when the network process answers, which can be before the device process is ready.
        try filter.forbid("device recvfrom")
        try? await token.startDevice()
        let device = try token.running
        #expect(try await device.exit() == .signal(SIGSYS))
        #expect(try token.network.isRunning)
        try filter.forbid("")
        try await token.startDevice()
        try await token.answer(transaction, with: .hold)
        #expect(try await fixture.portal.finalResult(of: transaction).isAuthenticated)
        #expect(fixture.server.logged("transaction \(transaction): authenticated") == 1)
      }
    }

    @Test("Other calls end the program", arguments: ["device", "network"])
    func listedCalls(process: String) async throws {
      try await withFilter { filter in
        func exit(of call: String) async throws -> ChildProcess.Exit {
          let line = filter.launcher + [UnitFilter.fixtures + "make-call", process, call]
          return try await run(line[0], Array(line.dropFirst())).exit
        }
        for call in ["mount", "ptrace", "chroot", "setuid", "sethostname", "setpriority"] {
          let ended = try await exit(of: call)
          #expect(ended == .signal(SIGSYS), "\(call)")
        }
        // The network process may ask whether the clock follows a time source: it decides on certificates.
        let asked = try await exit(of: "adjtimex")
        #expect(asked == (process == "network" ? .code(1) : .signal(SIGSYS)))
      }
    }
  }
}

/// The launcher that runs each process under the filter of its unit.
private struct UnitFilter {
  let folder: TemporaryDirectory

  static let fixtures = URL(filePath: #filePath).deletingLastPathComponent().path + "/Fixtures/"

  var launcher: [String] {
    [Self.fixtures + "unit-filter", Self.fixtures + "../../../packaging/debian", folder.file("forbidden")]
  }

  /// Forbids more calls to processes that start from now on; see `unit-filter`.
  func forbid(_ line: String) throws { _ = try folder.write(line + "\n", to: "forbidden") }
}

private func withFilter(_ body: (UnitFilter) async throws -> Void) async throws {
  let folder = try TemporaryDirectory()
  defer { folder.remove() }
  try await body(UnitFilter(folder: folder))
}

private func withFilteredScene(_ body: (EndToEndFixture, UnitFilter) async throws -> Void) async throws {
  try await withFilter { filter in
    try await withScene(
      makeToken: { TestToken(state: $0, board: $1, launcher: filter.launcher, isSplit: true) },
      { try await body($0, filter) })
  }
}
