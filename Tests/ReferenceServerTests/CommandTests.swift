// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import ServerTestSupport
import Testing

/// The administrators' commands, run as programs.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CommandTests {
  private func serverProgram(_ arguments: String...) throws -> ProgramOutput {
    try run(BuiltProgram.path("token-server"), arguments)
  }

  @Test("Init makes a private directory once") func initMakesAPrivateDirectoryOnce() throws {
    let directory = NSTemporaryDirectory() + "init-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: directory) }
    #expect(try serverProgram("init", "--directory", directory + "/").status == 0)
    let manager = FileManager.default
    func mode(_ path: String) throws -> Int {
      try manager.attributesOfItem(atPath: path)[.posixPermissions] as? Int ?? 0
    }
    #expect(try mode(directory) == 0o700)
    for file in ["pepper", "ca.key", "server.key", "config.toml", "token-server.db"] {
      #expect(try mode("\(directory)/\(file)") == 0o600, "\(file)")
    }
    let again = try serverProgram("init", "--directory", directory + "//")
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

  @Test("A URI that only this machine reaches is created with a warning") func loopbackURI() throws {
    let directory = try ServerDirectories.new()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let local = try serverProgram("activation-code", "alice", "--directory", directory)
    #expect(local.status == 0 && local.errors.contains(#"set "listen" and "issuer""#))
    let file = directory + "/config.toml"
    let text = try String(contentsOfFile: file, encoding: .utf8)
    try ("issuer = \"https://auth.example.org:8443\"\n" + text).write(toFile: file, atomically: true, encoding: .utf8)
    let reachable = try serverProgram("activation-code", "alice", "--directory", directory)
    #expect(reachable.status == 0 && reachable.text.contains("auth.example.org"))
    // The certificate of the test's server has no such name.
    #expect(reachable.errors.contains("is not for auth.example.org") && !reachable.errors.contains("listen"))
  }

  @Test("What keeps the server from starting is named in one line") func faultsOfTheStart() throws {
    let server = try TokenServerProcess()
    for (fault, text) in [
      ("port", "cannot listen on 127.0.0.1:\(server.port): Address already in use"),
      ("certificate", "server.pem, which is tls.certificate"), ("database", "there is no database"),
      ("listen", "\"listen\" is not an address of this machine: 300.1.1.1"),
    ] {
      let directory = try ServerDirectories.new()
      defer { try? FileManager.default.removeItem(atPath: directory) }
      switch fault {
      case "certificate": try FileManager.default.removeItem(atPath: directory + "/server.pem")
      case "database": try FileManager.default.removeItem(atPath: directory + "/token-server.db")
      case "listen":
        try "listen = \"300.1.1.1\"\n".write(toFile: directory + "/config.toml", atomically: true, encoding: .utf8)
      default: break
      }
      let port = fault == "port" ? server.port : 0
      let output = try serverProgram("serve", "--directory", directory, "--port", "\(port)", "--log-level", "error")
      #expect(output.status == 1, "\(fault)")
      #expect(output.errors.contains(text) && output.errors.split(separator: "\n").count == 1, "\(output.errors)")
    }
  }

  @Test("A deleted user is deregistered from the devices, which are notified") func deletedUser() throws {
    let (fixture, device) = try PINFixture.enrolled()
    let transaction = try fixture.ask(device)
    #expect(try serverProgram("user", "delete", "alice", "--directory", fixture.server.directory).status == 0)
    #expect(try serverProgram("user", "delete", "alice", "--directory", fixture.server.directory).status == 1)
    #expect(try !serverProgram("device", "list", "--directory", fixture.server.directory).text.contains("alice"))
    let answer = try fixture.server.curl(
      "--user", "\(fixture.portal.id):\(fixture.portal.secret)",
      fixture.server.url + "/oauth/api/v4/authenticate/transaction/\(transaction)")
    #expect(answer.json["is_authenticated"] as? Bool == false)
    #expect(try fixture.server.activationCode(for: "bob").isEmpty == false)
  }

  @Test("A portal's secret is replaced, and a deleted portal has none") func portalSecrets() throws {
    let server = try TokenServerProcess()
    let portal = try server.addPortal()
    func status(_ secret: String) throws -> Int {
      try server.curl("--user", "\(portal.id):\(secret)", server.url + "/oauth/api/v4/users/alice/devices").status
    }
    #expect(try status(portal.secret) != 401)
    let renewed = try server.admin("api-client", "renew", portal.id)
    let secret = try #require(renewed["client_secret"] as? String)
    #expect(try status(portal.secret) == 401 && status(secret) != 401)
    try server.admin("api-client", "delete", portal.id)
    #expect(try status(secret) == 401)
    #expect(try serverProgram("api-client", "renew", portal.id, "--directory", server.directory).status == 1)
  }

  @Test("A portal cancels only its own requests") func cancelOfAnother() throws {
    let (fixture, device) = try PINFixture.enrolled()
    let transaction = try fixture.ask(device)
    let other = try fixture.server.addPortal("other")
    func cancel(_ portal: (id: String, secret: String)) throws -> Int {
      try fixture.server.curl(
        "--request", "DELETE", "--user", "\(portal.id):\(portal.secret)",
        fixture.server.url + "/oauth/api/v4/authenticate/transaction/\(transaction)"
      ).status
    }
    #expect(try cancel(other) == 404 && cancel((fixture.portal.id, fixture.portal.secret)) == 204)
  }

  @Test("Nothing resumes an unknown user") func unknownUser() throws {
    let directory = try ServerDirectories.new()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    #expect(try serverProgram("user", "resume", "bob", "--directory", directory).errors.contains("no user bob"))
    #expect(try serverProgram("user", "resume", "alice", "--directory", directory).status == 0)
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
      (["transaction", "list"], "[]"), (["user", "list"], "alice"), (["fleet-token", "list"], "[]"),
      (["activation-code", "list"], device.clientID),
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

  @Test("The device list shows the serial number of the board, and nothing for one without")
  func listsSerialNumbers() throws {
    let server = try TokenServerProcess()
    func list(_ options: String...) throws -> String {
      try run(BuiltProgram.path("token-server"), ["device", "list", "--directory", server.directory] + options).text
    }
    let marked = try DeviceClient(server)
    try marked.register(try server.activationCode(for: "alice"), boardSerial: "10000000abcdef01").expect(201)
    #expect(try list().contains("Test device 1.0.0, board 10000000abcdef01"))
    #expect(try list("--json").contains(#""board_serial":"10000000abcdef01""#))
    let other = try DeviceClient(server)
    try other.register(try server.activationCode(for: "bob")).expect(201)
    #expect(try list().components(separatedBy: ", board ").count == 2)
  }

  @Test("The list of types warns of an authenticator whose scripts cannot be run") func scriptsThatCannotBeRun() throws
  {
    let directory = NSTemporaryDirectory() + "init-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: directory) }
    #expect(try run(BuiltProgram.path("token-server"), ["init", "--directory", directory]).status == 0)
    try """
    [application]
    pin = true
    custom_authenticators = true
    [[authenticator]]
    id = "badge"
    name = "Badge"
    kind = "custom"
    scripts = "badge"
    """.write(toFile: directory + "/config.toml", atomically: true, encoding: .utf8)
    func warning() throws -> String {
      let output = try run(BuiltProgram.path("token-server"), ["type", "list", "--directory", directory])
      #expect(output.status == 0)
      return output.errors
    }
    #expect(try warning().hasSuffix("/badge/register does not exist\n"))
    let scripts = try TestScripts(in: directory + "/badge")
    #expect(try warning() == "")
    try scripts.write("authenticate", "#!/bin/sh\n", mode: 0o644)
    #expect(try warning().hasSuffix("/badge/authenticate is not executable\n"))
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
