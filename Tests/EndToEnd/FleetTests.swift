// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import ProgramHarness
import Testing

extension EndToEnd {
  /// Many boards from one list of users and host names.
  @Suite struct Fleets {
    @Test("A board of a fleet enrolls with its file, and is listed with its host name")
    func boardOfAFleetEnrolls() async throws {
      try await withScene { fixture in
        let list = fixture.folder.file("boards.csv")
        try "user,host\r\ncarol,token-7\nalice,token-8\n".write(toFile: list, atomically: true, encoding: .utf8)
        let settings = fixture.folder.file("settings.toml")
        try "board = \"raspberry-pi-4\"".write(toFile: settings, atomically: true, encoding: .utf8)
        let folder = fixture.folder.file("fleet")
        let made = try await fixture.server.command("fleet", list, "--output", folder, "--settings", settings)
        #expect(!made.output.contains("approvaltoken:"))

        let text = try String(contentsOfFile: "\(folder)/token-7/approval-token.toml", encoding: .utf8)
        #expect(text == "board = \"raspberry-pi-4\"\nhost = \"token-7\"\n")
        let uri = try String(contentsOfFile: "\(folder)/token-7/approval-token.uri", encoding: .utf8)
        let board = TestToken(state: fixture.folder.file("board"), board: "simulated")
        try await board.enroll(uri.trimmingCharacters(in: .newlines)).succeeded()

        let devices = try await fixture.server.devices()
        #expect(devices.first { $0.users.map(\.user) == ["carol"] }?.name == thisHost)
      }
    }

    /// What the token gives the server as its name.
    private var thisHost: String {
      var name = [CChar](repeating: 0, count: 65)
      gethostname(&name, name.count - 1)
      return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
  }
}
