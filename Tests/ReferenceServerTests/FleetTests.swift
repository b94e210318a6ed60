// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import ReferenceProtocol
import ServerTestSupport
import Testing

/// `token-server fleet`, run as a program.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct FleetTests {
  private let folder = NSTemporaryDirectory() + "fleet-\(UUID().uuidString)"
  private let server: TokenServerProcess

  init() throws {
    server = try TokenServerProcess()
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  private func fleet(_ list: [UInt8], settings: String? = nil, _ more: String...) throws -> ProgramOutput {
    try Data(list).write(to: URL(fileURLWithPath: folder + "/list.csv"))
    var arguments =
      ["fleet", folder + "/list.csv", "--directory", server.directory, "--output", folder + "/out"] + more
    if let settings {
      try settings.write(toFile: folder + "/settings.toml", atomically: true, encoding: .utf8)
      arguments += ["--settings", folder + "/settings.toml"]
    }
    return try run(BuiltProgram.path("token-server"), arguments)
  }

  private func entries(_ path: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: folder + path)) ?? []).sorted()
  }

  @Test("The files of each board, readable by their owner only, and the list with their folders")
  func filesOfEachBoard() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let output = try fleet(Array("user,host\nalice,a-1\nalice,a-2\r\nbob,b\n".utf8))
    #expect(output.status == 0, "\(output.errors)")
    #expect(entries("/out") == ["a-1", "a-2", "b"])
    var uris: Set<String> = []
    for host in ["a-1", "a-2", "b"] {
      #expect(entries("/out/\(host)") == ["approval-token.toml", "approval-token.uri"])
      for file in entries("/out/\(host)") {
        let attributes = try FileManager.default.attributesOfItem(atPath: "\(folder)/out/\(host)/\(file)")
        #expect(attributes[.posixPermissions] as? Int == 0o600)
      }
      uris.insert(try String(contentsOfFile: "\(folder)/out/\(host)/approval-token.uri", encoding: .utf8))
    }
    #expect(uris.count == 3)
    let lines = output.text.split(separator: "\n")
    #expect(lines.first == "user,host,folder,expires" && lines.count == 4)
    #expect(lines[1].hasPrefix("alice,a-1,\(folder)/out/a-1,20"))
    #expect(!output.text.contains("approvaltoken:"))
  }

  @Test("The code of a board is a long one, and a device registers with it") func longCode() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    #expect(try fleet(Array("user,host\nalice,a\n".utf8)).status == 0)
    let text = try String(contentsOfFile: "\(folder)/out/a/approval-token.uri", encoding: .utf8)
    let code = try ActivationURI(parsing: text.trimmingCharacters(in: .newlines)).code.digits
    #expect(code.count == ActivationCode.Form.long.rawValue)
    try DeviceClient(server).register(code).expect(201)
  }

  @Test(
    "A list with an error makes nothing, and the error names the line",
    arguments: [
      ("", "line 1"), ("alice,a\n", "line 1"), ("user,host\n", "no board"), ("user,host\nalice\n", "line 2"),
      ("user,host\nalice,a,b\n", "line 2"), ("user,host\nalice,a\nbob,a\n", "line 3"),
      ("user,host\nal ice,a\n", "line 2"), ("user,host\n,a\n", "line 2"), ("user,host\nalice,\n", "line 2"),
      ("user,host\nalice,..\n", "line 2"), ("user,host\nalice,a/b\n", "line 2"), ("user,host\nalice,A\n", "line 2"),
      ("user,host\nalice,-a\n", "line 2"), ("user,host\n\"alice\",a\n", "line 2"),
      ("user,host\nalice,\(String(repeating: "a", count: 64))\n", "line 2"), ("user,host\n\u{1B}[2J,a\n", "line 2"),
    ])
  func listWithAnError(list: String, part: String) throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let output = try fleet(Array(list.utf8))
    #expect(output.status == 1 && output.errors.contains(part), "\(output.errors)")
    #expect(entries("") == ["list.csv"])
    let user = try run(BuiltProgram.path("token-server"), ["user", "add", "bob", "--directory", server.directory])
    #expect(user.status == 0)
  }

  @Test("Other errors make nothing") func otherErrorsMakeNothing() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let list = Array("user,host\nalice,a\n".utf8)
    #expect(try fleet([0xFF] + list).errors.contains("UTF-8"))
    #expect(try fleet(list, settings: "board = \"x\"\n host = \"y\"\n").errors.contains("the host is in the list"))
    #expect(try fleet(list, settings: nil, "--days", "0").status == 64)
    #expect(try fleet(list, settings: nil, "--days", "31").status == 64)
    #expect(entries("/out").isEmpty)
    #expect(try fleet(list).status == 0)
    // The directory must be a new one.
    let again = try fleet(list).errors
    #expect(again.contains("cannot create the directory \(folder)/out: File exists; choose another one with --output"))
  }

  @Test("A byte order mark, as spreadsheets and editors write it, belongs neither to the list nor to the settings")
  func byteOrderMark() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let list: [UInt8] = [0xEF, 0xBB, 0xBF] + Array("user,host\r\nalice,a\r\n".utf8)
    let output = try fleet(list, settings: "\u{FEFF}board = \"b\"\r\n\r\n# mine\n")
    #expect(output.status == 0, "\(output.errors)")
    let file = FileManager.default.contents(atPath: folder + "/out/a/approval-token.toml")
    #expect(file == Data("board = \"b\"\n# mine\nhost = \"a\"\n".utf8))
  }

  @Test("Settings that a board would not take make nothing, and the error names file and line")
  func settingsWithAnError() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let list = Array("user,host\nalice,a\n".utf8)
    let output = try fleet(list, settings: "board = \"b\"\nwifi_pasword = \"correct horse\"\n")
    #expect(output.status == 1 && output.errors.contains("settings.toml: line 2 is not"), "\(output.errors)")
    #expect(entries("/out").isEmpty)
  }
}
