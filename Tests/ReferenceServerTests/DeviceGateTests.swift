// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Cryptography
import Foundation
import ReferenceProtocol
import ServerTestSupport
import Testing

/// Proofs, nonces, revoked devices, events and shutdown, against the running server.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct DeviceGateTests {
  let server: TokenServerProcess
  let device: DeviceClient
  let portal: (id: String, secret: String)

  init() throws {
    let ready = try ReadyServer()
    (server, device, portal) = (ready.server, ready.device, ready.portal)
  }

  @Test("A stale nonce is asked for again") func aStaleNonceIsAskedForAgain() throws {
    device.nonce = "stale"
    let reply = try server.curl(device.arguments("GET", "/device/v1/pending"))
    #expect(reply.status == 401)
    #expect(reply.headers["www-authenticate"]?.contains("use_dpop_nonce") == true)
    device.nonce = reply.headers["dpop-nonce"]
    #expect(try server.curl(device.arguments("GET", "/device/v1/pending")).status == 200)
    device.nonce = nil
    let token = try device.token(["grant_type=client_credentials"])
    #expect(token.status == 200)
  }

  @Test("A proof counts once") func aProofCountsOnce() throws {
    let arguments = try device.arguments("GET", "/device/v1/pending")
    #expect(try server.curl(arguments).status == 200)
    let replayed = try server.curl(arguments)
    #expect(replayed.status == 401)
    #expect(replayed.headers["www-authenticate"]?.contains("invalid_dpop_proof") == true)
  }

  /// Fails if the error of the route's own read is sent before the proof is checked.
  @Test("A used proof and a stolen token learn nothing about requests", arguments: ["", "/message"])
  func readsBeforeChecks(path: String) throws {
    let target = "/device/v1/requests/\(UUID().uuidString.lowercased())" + path
    let arguments = try device.arguments("GET", target)
    #expect(try server.curl(arguments).decoded(Problem.self).slug == .notFound)
    #expect(try server.curl(arguments).status == 401)
    let thief = try DeviceClient(server)
    #expect(try thief.call("GET", target, token: device.deviceToken).status == 401)
    try device.call("DELETE", "/oauth/register/\(device.clientID)").expect(204)
    #expect(try device.call("GET", target).decoded(Problem.self).slug == .deviceDeregistered)
  }

  @Test("A stolen token is worthless") func aStolenTokenIsWorthless() throws {
    let thief = try DeviceClient(server)
    #expect(try thief.call("GET", "/device/v1/pending", token: device.deviceToken).status == 401)
  }

  @Test("A revoked token is worthless") func aRevokedTokenIsWorthless() throws {
    try device.token(["token=\(device.deviceToken ?? "")"], path: "/oauth/revoke").expect(200)
    let reply = try device.call("GET", "/device/v1/pending")
    #expect(reply.headers["www-authenticate"]?.contains("invalid_token") == true)
  }

  @Test("An administrator deletes a device that is connected") func anAdministratorDeletesADeviceThatIsConnected()
    throws
  {
    let stream = try device.openEventStream()
    try server.admin("device", "delete", device.clientID)
    var lines: [String] = []
    while let line = stream.nextLine() { lines.append(line) }
    #expect(lines.contains("event: device-revoked"))
    #expect(try device.call("GET", "/device/v1/pending").expect(401).decoded(Problem.self).slug == .deviceDeregistered)
    #expect(try device.logIn().json["error_code"] as? Int == 9002)
  }

  @Test("A device deregisters itself") func aDeviceDeregistersItself() throws {
    let path = "/oauth/register/\(device.clientID)"
    let other = try DeviceClient.enrolled(at: server, as: "bob")
    #expect(try other.call("DELETE", path).status == 403)
    try device.call("DELETE", path).expect(204)
    #expect(try device.call("DELETE", path).decoded(Problem.self).slug == .deviceDeregistered)
  }

  @Test("A deleted user differs from an unknown one") func deletedUserDiffersFromAnUnknownOne() throws {
    try device.call("DELETE", "/device/v1/profiles/PROF01").expect(204)
    try device.call("DELETE", "/device/v1/profiles/PROF01").expect(204)
    #expect(
      try device.call("DELETE", "/device/v1/profiles/PROF01/push").decoded(Problem.self).slug == .userDeregistered)
    #expect(try device.call("DELETE", "/device/v1/profiles/NOBODY/push").decoded(Problem.self).slug == .notFound)
  }

  @Test("A newer stream ends the older") func aNewerStreamEndsTheOlder() throws {
    let older = try device.openEventStream()
    let newer = try device.openEventStream()
    while older.nextLine() != nil {}
    #expect(older.waitForEnd() == 0)
    newer.send(SIGTERM)
  }

  @Test("A cursor of before a restart means read the list") func aCursorOfBeforeARestartMeansReadTheList() throws {
    let cursor = try device.events(after: nil)?.cursor
    let port = server.port
    #expect(server.stop() == 0)
    let again = try TokenServerProcess(directory: server.directory, port: port)
    #expect(try device.events(after: cursor)?.events == [DeviceEvent(.resync)])
    _ = again
  }

  @Test("A stream resumes behind its last event") func aStreamResumesBehindItsLastEvent() throws {
    let cursor = try device.events(after: nil)?.cursor
    let started = try server.curl(
      "--user", "\(portal.id):\(portal.secret)", "--data", "type=login&user_id=alice&device_id=\(device.clientID)",
      "--data", "callback_uri=http://127.0.0.1:9/", server.url + "/oauth/api/v4/authenticate/user")
    let stream = try device.openEventStream(after: cursor)
    let frame = (1...4).compactMap { _ in stream.nextLine() }
    #expect(frame[0] == "" && frame[1].hasPrefix("id: ") && frame[2] == "event: request")
    #expect(frame[3].contains(started.json["transaction_id"] as? String ?? "-"))
    stream.send(SIGTERM)
  }

  @Test("A long poll without news is empty") func aLongPollWithoutNewsIsEmpty() throws {
    let cursor = try device.events(after: nil)?.cursor
    #expect(try device.events(after: cursor, wait: 0) == nil)
  }

  @Test("The server stops with streams open") func theServerStopsWithStreamsOpen() throws {
    // The server gives streams 1.2 s to end. The rest is a margin for a busy machine, and one of ten times is enough.
    let isInTime = try (1...10).contains { _ in
      let ready = try ReadyServer()
      let stream = try ready.device.openEventStream()
      let started = ContinuousClock.now
      #expect(ready.server.stop() == 0)
      let time = ContinuousClock.now - started
      while stream.nextLine() != nil {}
      #expect(stream.waitForEnd() == 0)
      return time < .seconds(5)
    }
    #expect(isInTime)
  }

  @Test("Nothing secret is logged") func nothingSecretIsLogged() throws {
    let server = try TokenServerProcess()
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    let code = try server.activationCode(for: "carol")
    try device.activate(code)
    let secrets = [code, device.deviceToken ?? "-", device.userToken ?? "-"]
    #expect(server.stop() == 0)
    for secret in secrets { #expect(!server.log.contains(secret)) }
    #expect(server.log.contains("device \(device.clientID) registered"))
  }
}
