// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Cryptography
import Foundation
import OpenPGP
import ReferenceProtocol
import ServerTestSupport
import Testing

@testable import TokenServerCore
@testable import TokenServerHTTP
@testable import TokenServerStore

/// Malicious requests against the running server, which must survive them.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct HostileClientTests {
  let server: TokenServerProcess

  init() throws { server = try TokenServerProcess() }

  private func requireAlive() throws {
    try server.curl(server.url + ServerMetadata.path).expect(200)
  }

  @Test("A nonce of chosen bytes does not crash the server")
  func chosenNonces() throws {
    let device = try DeviceClient(server)
    for first in [UInt8(0x80), 0x00, 0x7F, 0xFF] {
      let nonce = ([first] + [UInt8](repeating: first == 0x80 ? 0 : first, count: 39)).base64URL
      device.nonce = nonce
      device.clientID = "x"
      let reply = try server.curl(try device.tokenArguments(["grant_type=client_credentials"]))
      #expect(reply.json["error"] as? String == OAuthError.useDPoPNonce)
      device.nonce = nonce
      #expect(try server.curl(try device.arguments("GET", "/device/v1/pending", token: "t")).status == 401)
    }
    try requireAlive()
  }

  @Test("An assertion with extreme times does not crash the server")
  func extremeTimes() throws {
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    for now in [Int64.min + 60, Int64.max - 60, -1] {
      #expect(try device.token(["grant_type=client_credentials"], now: now).status != 200)
    }
    try requireAlive()
  }

  /// Without the limits, comparing such a value takes long.
  @Test(
    "A query has the limits of a form, and is read after the device is authenticated",
    arguments: [
      "include=messag" + String(repeating: "%CC%81", count: 31), "profile_id=%FF", "profile_id=a&profile_id=a",
      (0...64).map { "f\($0)=" }.joined(separator: "&"),
    ])
  func hostileQuery(query: String) throws {
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    let reply = try device.call("GET", "/device/v1/pending?" + query)
    #expect(reply.status == 400)
    #expect(try reply.decoded(Problem.self).slug == .invalidRequest)
    #expect(try server.curl(server.url + "/device/v1/pending?" + query).status == 401)
  }

  @Test(
    "A member that is there twice, a deep body and a number out of range are the client's fault",
    arguments: [
      #"{"ids":[],"ids":[]}"#,
      #"{"ids":["# + String(repeating: "[", count: 40) + String(repeating: "]", count: 40) + "]}",
      #"{"ids":[],"n":-1}"#, #"{"ids":[],"n":1e99}"#,
      #"{"ids":[],"transactions":["# + Array(repeating: "\"t\"", count: 257).joined(separator: ",") + "]}",
    ])
  func strictJSON(body: String) throws {
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    _ = try device.call("GET", "/device/v1/pending")
    let reply = try server.curl(device.arguments("POST", "/device/v1/events/acks"), input: Array(body.utf8))
    #expect(reply.status == 400)
    #expect(try reply.decoded(Problem.self).slug == .invalidRequest)
  }

  /// Comparing such text takes seconds of processor time, and its deadline does not end that.
  @Test("Text with very many combining marks is refused before it is compared")
  func combiningMarks() throws {
    let marks = String(repeating: "\u{301}", count: 60_000) + String(repeating: "\u{316}", count: 60_000)
    let began = try processorSeconds()
    let form = try server.curl(
      ["--data", "\(marks)=1", server.url + "/oauth/api/v4/authenticate/user"])
    #expect(form.status == 400, "\(form)")
    let json = try server.curl(
      [
        "--header", "Authorization: Bearer x", "--json", #"{"\#(marks)":1}"#, server.url + "/oauth/register",
      ])
    #expect(json.status == 400, "\(json)")
    let short = String(repeating: "\u{301}", count: 3000) + String(repeating: "\u{316}", count: 3000)
    for request in ["GET /\(short) HTTP/1.1\r\n", "GET / HTTP/1.1\r\nX: \(short)\r\n"] {
      let output = try raw(request + "Host: h\r\nConnection: close\r\n\r\n")
      #expect(output.hasPrefix("HTTP/1.1 400"), "\(output)")
    }
    #expect(try processorSeconds() - began < 10)
    try requireAlive()
  }

  /// The processor time that the server has used, in s.
  private func processorSeconds() throws -> Double {
    let status = try String(contentsOfFile: "/proc/\(server.processIdentifier)/stat", encoding: .utf8)
    // The first field after the name is the third.
    let fields = try #require(status.split(separator: ")").last).split(separator: " ")
    let ticks = try #require(Double(fields[11])) + #require(Double(fields[12]))
    return ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
  }

  private func raw(_ request: String) throws -> String {
    try run(
      "/usr/bin/env", ["timeout", "100", "openssl", "s_client", "-quiet", "-connect", "127.0.0.1:\(server.port)"],
      input: Array(request.utf8)
    ).text
  }

  @Test("Invalid chunks are a client error, not a server error")
  func brokenChunks() throws {
    let request = """
      POST /oauth/token HTTP/1.1\r
      Host: h\r
      Content-Type: application/x-www-form-urlencoded\r
      Transfer-Encoding: chunked\r
      Connection: close\r
      \r
      3\r
      a=b\r
      ZZZ\r

      """
    let output = try raw(request)
    #expect(output.hasPrefix("HTTP/1.1 400"), "\(output)")
    #expect(!server.log.contains("failed"), "\(server.log)")
    try requireAlive()
  }

  @Test(
    "A device's names and versions have no control or format characters",
    arguments: ["a\nb", "a\u{1B}[2Jb", "a\u{202E}b", "a\u{200B}b", "a\u{7F}b"])
  func namesOfDevices(name: String) throws {
    let code = try server.activationCode(for: "alice")
    let key = try P256PrivateKey()
    func register(_ change: (inout RegistrationRequest) -> Void) throws -> Int {
      var registration = RegistrationRequest(
        clientName: "n", softwareID: "s", softwareVersion: "1", key: JWK(key.publicKey),
        capabilities: .init(display: .none, keypad: false, button: true, led: .mono))
      change(&registration)
      let headers = ["--header", "Authorization: Bearer \(code)", "--header", "Content-Type: application/json"]
      return try server.curl(headers + [server.url + "/oauth/register"], input: JSON.encode(registration)).status
    }
    #expect(try register { $0.clientName = name } == 400)
    #expect(try register { $0.softwareID = name } == 400)
    #expect(try register { $0.softwareVersion = name } == 400)
    #expect(try register { $0.approvalCapabilities.custom = [name] } == 400)
    #expect(try register { $0.approvalCapabilities.custom = Array(repeating: "c", count: 33) } == 400)
    #expect(try register { $0.approvalCapabilities.biometric = [String(repeating: "c", count: 65)] } == 400)
    #expect(try register { $0.clientName = "a\u{2800}b" } == 400)
    #expect(try register { _ in } == 201)
    let device = try DeviceClient.enrolled(at: server, as: "bob")
    let validation = ValidationRequest(softwareVersion: "1", osVersion: name, profiles: [])
    #expect(try device.call("POST", "/device/v1/validations", body: validation).status == 400)
  }

  @Test("A fleet token registers at most the configured number of devices")
  func fullFleet() throws {
    let server = try TokenServerProcess(configuration: "[limits]\ndevices_per_fleet_token = 2\n")
    let token = try #require(try server.admin("fleet-token", "add", "fleet")["token"] as? String)
    let devices = [try DeviceClient(server), try DeviceClient(server), try DeviceClient(server)]
    try devices[0].register(token).expect(201)
    try devices[1].register(token).expect(201)
    try devices[2].register(token).expect(403)
    try devices[0].register(token).expect(201)
    try server.admin("device", "delete", devices[0].clientID)
    try devices[2].register(token).expect(201)
    #expect(try DeviceClient(server).register(String(repeating: "f", count: 200)).status == 401)
  }

  /// Fails if only the present devices count: every registration leaves a row in the database.
  @Test("A fleet token registers at most twice the configured number of devices in a day, with deregistered ones")
  func fleetLoop() throws {
    let server = try TokenServerProcess(configuration: "[limits]\ndevices_per_fleet_token = 2\n")
    let token = try #require(try server.admin("fleet-token", "add", "fleet")["token"] as? String)
    for _ in 0..<4 {
      let device = try DeviceClient(server)
      try device.register(token).expect(201)
      try device.logIn().expect(200)
      try device.call("DELETE", "/oauth/register/\(device.clientID)").expect(204)
    }
    try DeviceClient(server).register(token).expect(403)
  }

  @Test("A crash prints neither registers nor memory")
  func noCrashReport() throws {
    kill(server.processIdentifier, SIGILL)
    _ = server.stop(killing: false)
    let log = server.log
    for word in ["Registers", "Backtrace", "Crash:", "Images", "rip", "Thread 0"] {
      #expect(!log.contains(word), "\(log)")
    }
  }
}
