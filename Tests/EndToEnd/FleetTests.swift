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

    /// The launcher mounts a directory: only root can.
    @Test(
      "A board registers with a fleet token, is listed with its serial number, and is given to a user later",
      .enabled(if: geteuid() == 0))
    func boardWithoutUser() async throws {
      try await withScene { fixture in
        let file = fixture.folder.file("approval-token.uri")
        try await fixture.server.command("fleet-token", "add", "boards", "--uri", file)
        let uri = try String(contentsOfFile: file, encoding: .utf8)
        let board = TestToken(
          state: fixture.folder.file("board"), board: "simulated", launcher: Self.withSerial("10000000abcdef01"))
        try await board.start()
        defer { board.end() }
        // The second time as after a power loss, before the file was erased.
        for _ in 1...2 {
          let made = try await board.command("enroll", "-", input: uri).succeeded()
          #expect(made.output.hasPrefix("registered this device at ") && made.output.contains("no user"))
        }
        try await board.shows("must be enrolled (again)")
        let registered = try await fixture.server.devices().filter { $0.boardSerial == "10000000abcdef01" }
        try #require(registered.count == 1 && registered[0].users.isEmpty)

        try await fixture.server.addUser("carol")
        try await board.enroll(try await fixture.server.activation(for: "carol")).succeeded()
        try await board.shows("idle, connected")
        let given = try await fixture.server.devices().first { $0.deviceId == registered[0].deviceId }
        #expect(given?.users.map(\.user) == ["carol"] && given?.boardSerial == "10000000abcdef01")

        try await fixture.server.command("fleet-token", "delete", "boards")
        let late = TestToken(state: fixture.folder.file("late"), board: "simulated")
        #expect(try await late.command("enroll", "-", input: uri).exit == .code(77))
        #expect(try await fixture.server.devices().count == 2)
      }
    }

    /// Runs a program with the serial number in the device tree, as the firmware of a board writes it.
    private static func withSerial(_ serial: String) -> [String] {
      let script = """
        mount -t tmpfs none /sys/firmware
        mkdir -p /sys/firmware/devicetree/base
        printf '%s\\0' \(serial) >/sys/firmware/devicetree/base/serial-number
        exec "$@"
        """
      return ["unshare", "--mount", "sh", "-ec", script, "sh"]
    }

    /// What the token gives the server as its name.
    private var thisHost: String {
      var name = [CChar](repeating: 0, count: 65)
      gethostname(&name, name.count - 1)
      return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
  }
}
