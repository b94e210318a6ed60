// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

extension EndToEnd {
  /// What the kernel is asked for by each of the two processes, as strace(1) records it: the device process makes no
  /// Internet socket, and the network process opens nothing of the token's.
  @Suite struct SystemCalls {
    @Test("In two processes, one has the network and the other has the keys, over fifty requests", arguments: 0..<5)
    func separated(lane: Int) async throws {
      let traces = try TemporaryDirectory()
      defer { traces.remove() }
      let record =
        "exec strace -D -f --seccomp-bpf -qq -s 256 -e trace=execve,socket,connect,bind,open,openat,openat2 -o '\(traces.path)/'$$ \"$@\""
      try await withPINScene(
        settings: "max_pin_attempts = 3", isSplit: true, launcher: ["/bin/sh", "-c", record, "sh"]
      ) { fixture in
        let token = fixture.token
        for number in 1...10 {
          let transaction = try await fixture.ask()
          try await token.answer(transaction, with: number == 10 ? .double : .hold)
          _ = try await fixture.settled(transaction)
        }
        try await fixture.usePINThroughOutageAndRestart()
        try await token.network.kill9()
        let mark = try token.log.mark
        try await token.startNetwork()
        try await token.log.line(with: "] connected to", from: mark)
        try await fixture.approve()
        // Commands that open the vault beside the service; alice was renamed.
        _ = try await token.command("doctor").succeeded()
        _ = try await token.command("remove", "alicia").succeeded()
      }
      let calls = try FileManager.default.contentsOfDirectory(atPath: traces.path).map {
        try String(contentsOfFile: traces.file($0), encoding: .utf8).split(separator: "\n")
      }
      func of(_ command: String) -> [Substring] {
        calls.filter { $0.contains { $0.contains("execve(") && $0.contains("\"\(command)\", \"") } }.flatMap(\.self)
      }
      let device = of("device")
      let network = calls.filter {
        $0.contains { $0.contains("execve(") && $0.contains("approval-token-network\", [") }
      }
      .flatMap(\.self)
      // Controls: the search finds what each of them must do.
      #expect(device.contains { $0.contains("vault.sqlite3") })
      #expect(device.contains { $0.contains("socket(AF_UNIX") })
      #expect(network.contains { $0.contains("socket(AF_INET") })
      let commands = ["doctor", "remove"].map(of)
      for command in commands { #expect(command.contains { $0.contains("vault.sqlite3") }) }
      let sockets = (device + commands.joined()).filter {
        $0.contains("socket(AF_INET") || $0.contains("sin_addr") || $0.contains("sin6_addr")
      }
      #expect(sockets.isEmpty, "\(sockets.prefix(5))")
      let secrets = ["vault.sqlite3", "device-secret", "/dev/gpiochip", "/dev/bus/usb", "/dev/hidraw", "board.toml"]
      let files = network.filter { call in secrets.contains { call.contains($0) } }
      #expect(files.isEmpty, "\(files.prefix(5))")
    }
  }
}

extension EndToEndFixture {
  /// Expects that a hold approves a new request.
  func approve() async throws {
    let transaction = try await ask()
    try await token.answer(transaction, with: .hold)
    #expect(try await portal.finalResult(of: transaction).isAuthenticated)
  }
}
