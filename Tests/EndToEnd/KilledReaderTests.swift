// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import BuiltPrograms
import Foundation
import ProgramHarness
import TestBadge
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
    /// - Parameter behavior: of the key when the next program asks, which may be soon.
    func kill(after calls: Int, then behavior: TestSecurityKey.Behavior) async throws {
      _ = try await eventually("the key is asked") { key.calls.count > calls ? true : nil }
      key.set(behavior)
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
      try await kill(after: before, then: .touched(after: .zero))
      #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
      let result = try await fixture.portal.finalResult(of: transaction)
      #expect(result.isAuthenticated && result.authenticationMethod == "push_with_custom_authenticator")

      key.set(.untouched)
      let asked = key.calls.count
      let second = try await fixture.askForPIN(type: "transfer")
      for number in 0..<3 { try await kill(after: asked + number, then: .untouched) }
      try await token.type("13589")
      #expect(try await fixture.settled(second).hasPrefix("approved, receipt "))
      #expect(try await fixture.portal.finalResult(of: second).authenticationMethod == "push_with_pin")
      #expect(try await fixture.server.pinFailures() == 0)
    }
  }

  @Test(
    "A badge program that is killed while a request waits for the badge is started again; killed each time, the PIN is left"
  )
  func killedBadgeReader() async throws {
    let reader = try TestPCSC()
    let badge = try TestBadge()
    // A name of its own, by which its processes are found.
    let program = "\(reader.folder)/reader-badge"
    try FileManager.default.createSymbolicLink(
      atPath: program, withDestinationPath: try BuiltProgram.path("reader-badge"))
    let plugin = """
      authenticator = "badge"
      command = ["/usr/bin/env", "PCSCLITE_CSOCK_NAME=\(reader.socket)", "\(program)"]
      """
    /// Presents the badge until that has the effect: a badge that is there when the program looks first does not count.
    func present(until part: String, from mark: Int, _ token: TestToken) async throws {
      for _ in 1...20 {
        badge.insert(into: reader)
        defer { badge.remove() }
        if (try? await token.log.line(with: part, from: mark, within: .seconds(5))) != nil { return }
        badge.remove()
        // pcscd looks for cards every 0.4 s: a removal that it does not see is none.
        try await Task.sleep(for: .seconds(1))
      }
      throw OutputTimeoutError(description: part)
    }
    let types = Self.types("badge", verifiedBy: "signature = \"badge\"")
    try await withPlugin(plugin, types) { fixture in
      let token = fixture.token
      var killed: Set<pid_t> = []
      let mark = try token.log.mark
      try await register("badge", token) {
        try await present(until: "authenticator-registered", from: mark, token)
      }
      let transaction = try await fixture.askForPIN(type: "transfer")
      try await killProgram(program, &killed)
      try await present(until: "decided request \(transaction)", from: mark, token)
      #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
      let result = try await fixture.portal.finalResult(of: transaction)
      #expect(result.isAuthenticated && result.authenticationMethod == "push_with_custom_authenticator")

      let second = try await fixture.askForPIN(type: "transfer")
      for _ in 1...3 { try await killProgram(program, &killed) }
      try await token.type("13589")
      #expect(try await fixture.settled(second).hasPrefix("approved, receipt "))
      #expect(try await fixture.portal.finalResult(of: second).authenticationMethod == "push_with_pin")
      #expect(try await fixture.server.pinFailures() == 0)
    }
  }
}

extension EndToEnd.FingerprintReader {
  @Test(
    "A fingerprint program that is killed while a request waits is started again; killed each time, the PIN is left")
  func killedFingerReader() async throws {
    try await withReader { fixture, sensors, program in
      let token = fixture.token
      var (killed, used): (Set<pid_t>, Set<String>) = ([], [])
      try await registerFinger(token, in: sensors, &used)
      let transaction = try await fixture.askForPIN(type: "transfer")
      _ = try await newSensor(in: sensors, &used)
      try await killProgram(program, &killed)
      try await scan("index", at: newSensor(in: sensors, &used))
      #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
      #expect(try await fixture.portal.finalResult(of: transaction).authenticationMethod == "push_with_fingerprint")

      let second = try await fixture.askForPIN(type: "transfer")
      for _ in 1...3 { try await killProgram(program, &killed) }
      try await token.type("13589")
      #expect(try await fixture.settled(second).hasPrefix("approved, receipt "))
      #expect(try await fixture.portal.finalResult(of: second).authenticationMethod == "push_with_pin")
      // A program that ends is no wrong finger: the registration stays.
      #expect(try await fixture.server.account()?.authenticators == ["finger"])
      #expect(try await fixture.server.pinFailures() == 0)
    }
  }
}

/// Kills the next process of a program that has a path of its own.
private func killProgram(_ path: String, _ killed: inout Set<pid_t>) async throws {
  let known = killed
  let process = try await eventually("the program is started") { processes(with: path).first { !known.contains($0) } }
  killed.insert(process)
  kill(process, SIGKILL)
}

/// The processes with a word among their arguments.
private func processes(with word: String) -> [pid_t] {
  ((try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []).compactMap { pid_t($0) }.filter { process in
    let line = (try? String(contentsOfFile: "/proc/\(process)/cmdline", encoding: .utf8)) ?? ""
    return line.split(separator: "\0").contains { $0 == word }
  }
}
