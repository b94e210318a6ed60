// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import ServerTestSupport
import Testing

/// The administrators' commands, run as programs.
@Suite(.timeLimit(.minutes(5))) struct CommandTests {
  private func serverProgram(_ arguments: String...) throws -> ProgramOutput {
    try run(BuiltProgram.path("token-server"), arguments)
  }

  @Test("Init makes a private directory once") func initMakesAPrivateDirectoryOnce() throws {
    let directory = NSTemporaryDirectory() + "init-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: directory) }
    #expect(try serverProgram("init", "--directory", directory).status == 0)
    let manager = FileManager.default
    func mode(_ path: String) throws -> Int {
      try manager.attributesOfItem(atPath: path)[.posixPermissions] as? Int ?? 0
    }
    #expect(try mode(directory) == 0o700)
    for file in ["pepper", "ca.key", "server.key", "config.toml", "token-server.db"] {
      #expect(try mode("\(directory)/\(file)") == 0o600, "\(file)")
    }
    let again = try serverProgram("init", "--directory", directory)
    #expect(again.status == 1)
    #expect(again.errors.contains("already exists"))
  }

  @Test("A bad host leaves nothing behind", arguments: ["not a host", "a..b", "-", ""])
  func aBadHostLeavesNothingBehind(host: String) throws {
    let parent = NSTemporaryDirectory() + "init-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: parent) }
    let output = try serverProgram("init", "--directory", parent + "/server", "--host=\(host)")
    #expect((output.status == 0) == (host == "-"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: parent) == (host == "-" ? ["server"] : []))
  }

  @Test(
    "Bad input",
    arguments: [
      (["nonsense"], 64), (["serve", "--port", "70000"], 64), (["user", "add"], 64),
      (["serve", "--directory", "/nowhere"], 1), (["user", "add", "x", "--directory", "/nowhere"], 1),
      (["transaction", "list", "--limit", "0"], 64), (["user", "add", "a b", "--directory", "/nowhere"], 64),
    ] as [([String], Int32)])
  func badInput(arguments: [String], status: Int32) throws {
    let output = try run(BuiltProgram.path("token-server"), arguments)
    #expect(output.status == status)
    #expect(!output.errors.isEmpty)
    #expect(output.bytes.isEmpty)
  }

  @Test("Two servers in one directory") func twoServersInOneDirectory() throws {
    let server = try TokenServerProcess()
    let second = try serverProgram("serve", "--directory", server.directory, "--port", "0")
    #expect(second.status == 1)
    #expect(second.errors.contains("already running"))
  }

  @Test("Unknown things are refused") func unknownThingsAreRefused() throws {
    let server = try TokenServerProcess()
    for arguments in [
      ["activation-code", "nobody"], ["device", "delete", "none"], ["fleet-token", "delete", "none"],
    ] {
      let output = try run(BuiltProgram.path("token-server"), arguments + ["--directory", server.directory])
      #expect(output.status == 1, "\(arguments)")
    }
  }

  @Test("Lists in JSON") func listsInJSON() throws {
    let ready = try ReadyServer()
    let (server, device) = (ready.server, ready.device)
    for (arguments, text) in [
      (["device", "list"], device.clientID), (["api-client", "list"], "portal"), (["type", "list"], "login"),
      (["transaction", "list"], "[]"),
    ] {
      let output = try run(
        BuiltProgram.path("token-server"), arguments + ["--directory", server.directory, "--json"])
      #expect(output.text.contains(text))
      #expect((try? JSONSerialization.jsonObject(with: Data(output.bytes))) is [Any])
    }
  }

  @Test(
    "Init turns the PIN on, and --no-pin turns it off",
    arguments: [([], "push_with_pin"), (["--pin"], "push_with_pin"), (["--no-pin"], "push")] as [([String], String)])
  func initTurnsThePINOn(options: [String], method: String) throws {
    let directory = NSTemporaryDirectory() + "init-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: directory) }
    #expect(try run(BuiltProgram.path("token-server"), ["init", "--directory", directory] + options).status == 0)
    let types = try serverProgram("type", "list", "--directory", directory)
    #expect(types.text == "login  push  60 s\npayment  \(method)  120 s\n")
    let configuration = try String(contentsOfFile: directory + "/config.toml", encoding: .utf8)
    #expect(configuration.contains("\npin = \(method == "push_with_pin")\n"))
  }

  @Test("The device list shows how PINs stand") func theDeviceListShowsHowPINsStand() throws {
    let fixture = try PINFixture()
    func list(_ options: String...) throws -> String {
      try run(BuiltProgram.path("token-server"), ["device", "list", "--directory", fixture.server.directory] + options)
        .text
    }
    let device = try DeviceClient(fixture.server)
    let code = try fixture.server.activationCode(for: "alice")
    try device.register(code).expect(201)
    try device.activateForPIN(code).expect(200)
    #expect(try list().contains("alice  profile PROF01, not enrolled, PIN not chosen yet"))
    try device.activatePIN().expect(204)
    try device.logInWithPIN(.wrong).expect(400)
    #expect(try list().contains("alice  profile PROF01, not enrolled, PIN, 1 wrong"))
    let json = try list("--json")
    #expect(json.contains(#""pin":"active","pin_failures":1"#))
  }
}
