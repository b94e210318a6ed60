// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import TestSecurityKey
import Testing

extension EndToEnd.Plugins {
  @Test(
    "A reader program that is killed while a request waits for a touch is started again; killed each time, the PIN is left"
  )
  func killedReader() async throws {
    let path = "/tmp/security-key-\(UUID().uuidString.prefix(8))"
    let key = try TestSecurityKey(at: path)
    defer { key.stop() }
    /// Waits until the key has been asked again, and kills the program that asked.
    func kill(after calls: Int) async throws {
      _ = try await eventually("the key is asked") { key.calls.count > calls ? true : nil }
      let killed = processes(with: path)
      #expect(killed.count == 1)
      for process in killed { Glibc.kill(process, SIGKILL) }
    }
    try await withKey(at: path, verifiedBy: "signature = \"security_key\"") { fixture in
      let token = fixture.token
      try await register("key", token)
      key.set(.untouched)
      let before = key.calls.count
      let transaction = try await fixture.askForPIN(type: "transfer")
      try await kill(after: before)
      key.set(.touched(after: .zero))
      #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
      let result = try await fixture.portal.finalResult(of: transaction)
      #expect(result.isAuthenticated && result.authenticationMethod == "push_with_custom_authenticator")

      key.set(.untouched)
      var asked = key.calls.count
      let second = try await fixture.askForPIN(type: "transfer")
      for _ in 1...3 {
        try await kill(after: asked)
        asked = key.calls.count
      }
      try await token.type("13589")
      #expect(try await fixture.settled(second).hasPrefix("approved, receipt "))
      #expect(try await fixture.portal.finalResult(of: second).authenticationMethod == "push_with_pin")
      #expect(try await fixture.server.pinFailures() == 0)
    }
  }

  /// The processes with a word among their arguments.
  private func processes(with word: String) -> [pid_t] {
    ((try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []).compactMap { pid_t($0) }.filter { process in
      let line = (try? String(contentsOfFile: "/proc/\(process)/cmdline", encoding: .utf8)) ?? ""
      return line.split(separator: "\0").contains { $0 == word }
    }
  }
}
