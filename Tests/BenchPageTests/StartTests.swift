// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import Testing

@testable import BenchPage

/// A program in place of `approval-token` and `token-server`: none of its processes becomes ready except the network
/// process. Each writes its identifier into a file.
private final class StandIn: Sendable {
  let folder = FileManager.default.temporaryDirectory.appending(path: "bench-start-\(UUID())").path
  var program: String { folder + "/program" }

  init() throws {
    // Written by another process: while this one had the file open, it could not be run.
    let status = system(
      #"""
      mkdir -m 700 '\#(folder)' && cat >'\#(program)' <<'END' && chmod 700 '\#(program)'
      #!/bin/sh
      echo $$ >"$0.$1"
      if [ "$1" = network ]; then echo ready; fi
      if [ "$1" = device ] && [ -e "$0.fault" ]; then
        until [ -e "$0.network" ]; do sleep 0.05; done
        cat "$0.fault" >&2
        exit 1
      fi
      exec sleep 600
      END
      """#)
    try #require(status == 0)
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  /// Lets the device process end with this error.
  func fail(_ fault: String) throws {
    unlink(program + ".network")
    try fault.write(toFile: program + ".fault", atomically: true, encoding: .utf8)
  }

  private func process(_ name: String) -> pid_t? {
    let line = text(of: "\(program).\(name)", atMost: 20)
    return line.hasSuffix("\n") ? pid_t(line.dropLast()) : nil
  }

  func waitForStart(of name: String) async throws {
    try await wait(.seconds(60), for: "\(name) should have started") { self.process(name) != nil }
  }

  func hasEnded(_ name: String) throws -> Bool {
    let process = try #require(self.process(name))
    return kill(process, 0) != 0
  }
}

/// Fails if a process that nothing knows any longer goes on running.
@Suite(.timeLimit(.minutes(5))) struct StartTests {
  private let standIn: StandIn

  init() throws { standIn = try StandIn() }

  private var token: TokenProgram {
    TokenProgram(program: standIn.program, folder: standIn.folder, name: "token", clockLibrary: nil)
  }

  @Test("If a process ends at the start of a token, none runs; the error has only what that process wrote")
  func ended() async throws {
    let token = token
    for fault in ["the first fault", "the second fault"] {
      try standIn.fail(fault)
      let error = await #expect(throws: BenchError.self) { try await token.start() }
      #expect(error?.description == "the token has ended: \(fault)")
      #expect(try standIn.hasEnded("device"))
      #expect(try standIn.hasEnded("network"))
      #expect(await !token.isNetworkRunning)
    }
  }

  @Test("A start of a token that does not come to its end leaves no process") func tokenIsNotReady() async throws {
    let token = token
    let starting = Task { try await token.start() }
    for name in ["device", "network"] { try await standIn.waitForStart(of: name) }
    starting.cancel()
    await #expect(throws: CancellationError.self) { try await starting.value }
    #expect(try standIn.hasEnded("device"))
    #expect(try standIn.hasEnded("network"))
    #expect(await !token.isRunning)
    #expect(await !token.isNetworkRunning)
  }

  @Test("Nor does that of a token server") func serverIsNotReady() async throws {
    let server = ServerProgram(program: standIn.program, folder: standIn.folder)
    let starting = Task { try await server.start() }
    try await standIn.waitForStart(of: "serve")
    starting.cancel()
    await #expect(throws: CancellationError.self) { try await starting.value }
    #expect(try standIn.hasEnded("serve"))
    #expect(await !server.isRunning)
  }
}
