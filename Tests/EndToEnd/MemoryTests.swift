// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import Glibc
import ProgramHarness
import Testing

extension EndToEnd {
  /// Searches the memory of a running token after each use of a PIN.
  @Suite struct Memory {
    private static let right = "27182845"
    private static let wrong = "90817263"
    private static let unfinished = "46130572"
    private static let other = "31415926"
    private static let chosen = "50926738"

    /// Reads the memory of a process that forbids it, so it needs root, as in `.ci/run`.
    @Test(
      "Holds no PIN and nothing that a PIN unwraps",
      .enabled(if: geteuid() == 0, "reading the memory of a process that forbids it needs root"))
    func holdsNoPINAndNothingThatPINsUnwrap() async throws {
      try await withPINScene(users: [], settings: "[application.pin_policy]\nlength = 8") { fixture in
        for (user, pin) in [("bob", Self.other), ("alice", Self.right)] {
          try await fixture.server.addUser(user)
          let mark = try fixture.token.log.mark
          let uri = try await fixture.server.activation(for: user)
          try await fixture.token.enroll(uri, name: user, choosing: pin).succeeded()
          try await fixture.token.log.line(with: "] connected to", from: mark)
        }
        // While the token is idle: nothing of a PIN is found, but the account name is.
        try await Self.search(fixture.token, after: "choosing a PIN", secretsOf: Self.right)

        let device = try #require(try await fixture.portal.devices().first).id
        let fixture = EndToEndFixture(
          folder: fixture.folder, server: fixture.server, token: fixture.token, portal: fixture.portal, device: device,
          account: "alice")
        let transaction = try await fixture.askForPIN()
        try await fixture.token.type(Self.wrong)
        try await fixture.token.log.line(with: "pin-wrong request \(transaction)")
        try await Self.search(fixture.token, after: "a wrong PIN", secretsOf: Self.wrong)

        try await fixture.token.type(Self.right)
        #expect(try await fixture.settled(transaction).hasPrefix("approved"))
        try await Self.search(fixture.token, after: "the right PIN", secretsOf: Self.right)

        let canceled = try await fixture.askForPIN()
        try await fixture.token.beginTyping(Self.unfinished)
        try await fixture.token.press("escape", "escape")
        #expect(try await fixture.settled(canceled).hasPrefix("denied (cancelled)"))
        try await Self.search(fixture.token, after: "a cancelled PIN", secretsOf: Self.right)

        // A panel task that is interrupted: the accounts are read again, and every task of the round is canceled.
        let interrupted = try await fixture.askForPIN()
        try await fixture.token.beginTyping(Self.unfinished)
        let reloading = try fixture.token.log.mark
        try await fixture.token.command("remove", "bob").succeeded()
        try await fixture.token.log.line(with: "] connected to", from: reloading)
        try await Self.search(fixture.token, after: "a task that was cancelled", secretsOf: Self.right)
        try await fixture.token.asks(Wanted.pin.rawValue)
        try await fixture.token.press("escape", "escape")
        #expect(try await fixture.settled(interrupted).hasPrefix("denied (cancelled)"))

        try await fixture.changePIN(from: Self.right, to: Self.chosen)
        try await Self.search(fixture.token, after: "a PIN change", secretsOf: Self.chosen)
      }
    }

    private static func search(_ token: TestToken, after what: String, secretsOf pin: String) async throws {
      var forbidden: [(String, [UInt8])] = []
      for digits in [right, wrong, unfinished, chosen, other] {
        let values = digits.utf8.map { $0 - 48 }
        forbidden += [
          ("\(digits) as text", Array(digits.utf8)), ("\(digits) as numbers", values),
          ("\(digits) as keys", values.map { 0x1E + ($0 + 9) % 10 }),
          ("\(digits) as keypad keys", values.map { 0x59 + ($0 + 9) % 10 }),
        ]
      }
      let unwrapped = try await run(Program.cardSecrets, [token.state, pin]).succeeded().output
      for line in unwrapped.split(separator: "\n") {
        let words = line.split(separator: " ").map(String.init)
        let bytes = stride(from: 0, to: words[1].count, by: 2).map { offset in
          UInt8(words[1].dropFirst(offset).prefix(2), radix: 16)!
        }
        // A half is as useful as the whole to verify PIN guesses.
        forbidden += [
          ("\(words[0])'s first half", Array(bytes[..<16])), ("\(words[0])'s second half", Array(bytes[16...])),
          ("\(words[0]) as hexadecimal text", Array(words[1].prefix(32).utf8)),
          ("\(words[0]) as Base64", Array(Data(bytes).base64EncodedString().prefix(40).utf8)),
        ]
      }
      let memory = try ProcessMemory(of: token.running.processID)
      #expect(memory.bytes > 1 << 20, "only \(memory.bytes) bytes could be read")
      // Positive control: data that must be there is found.
      #expect(memory.holds(Array(token.state.utf8)))
      for (name, pattern) in forbidden {
        #expect(!memory.holds(pattern), "after \(what), memory holds \(name)")
      }
    }
  }
}

/// A snapshot of all writable memory of a process.
private struct ProcessMemory {
  private let regions: [Data]

  init(of process: pid_t) throws {
    let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/\(process)/mem"))
    let maps = try wholeText(of: "/proc/\(process)/maps")
    regions = maps.split(separator: "\n").compactMap { line in
      let fields = line.split(separator: " ", omittingEmptySubsequences: true)
      guard fields[1].hasPrefix("rw") else { return nil }
      let ends = fields[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
      // Guard pages and similar regions cannot be read.
      guard (try? handle.seek(toOffset: ends[0])) != nil else { return nil }
      return try? handle.read(upToCount: Int(ends[1] - ends[0]))
    }
  }

  var bytes: Int { regions.reduce(0) { $0 + $1.count } }

  func holds(_ pattern: [UInt8]) -> Bool {
    regions.contains { $0.withUnsafeBytes { isFound(pattern, in: $0) } }
  }
}

/// Searches bytes. `Data.range(of:)` is many times slower, which matters for hundreds of megabytes.
private func isFound(_ pattern: [UInt8], in bytes: UnsafeRawBufferPointer) -> Bool {
  guard var place = bytes.baseAddress, let first = pattern.first else { return false }
  let end = place + bytes.count
  while end - place >= pattern.count, let found = memchr(place, Int32(first), end - place - pattern.count + 1) {
    if memcmp(found, pattern, pattern.count) == 0 { return true }
    place = UnsafeRawPointer(found) + 1
  }
  return false
}

extension TestToken {
  fileprivate func beginTyping(_ digits: String) async throws {
    try await asks(Wanted.pin.rawValue)
    try await press(keys: digits.map(String.init))
    try await shows(Self.entering)
  }
}
