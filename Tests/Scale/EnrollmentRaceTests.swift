// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import ServerTestSupport
import Testing

/// Enrollments at several servers at the same time.
@Suite(.timeLimit(.minutes(10)), .serialized) struct EnrollmentRaceTests {
  private let server: TokenServerProcess

  init() throws {
    server = try TokenServerProcess(
      configuration: """
        [limits]
        devices_per_fleet_token = 5
        [[type]]
        name = "login"
        method = "push"
        """, servers: 4)
  }

  /// Sends all at once. Any status but 201 and `others` is a failure.
  /// - Returns: the devices that were registered, one for each request that succeeded.
  private func register(_ commands: [Curl.Command], others: Set<Int>) throws -> [String] {
    let replies = try server.curl.race(commands)
    let statuses = replies.map(\.status)
    #expect(Set(statuses).isSubset(of: others.union([201])), "\(statuses)")
    return try replies.filter { $0.status == 201 }.map { try $0.decoded(RegistrationResponse.self).clientID }
  }

  @Test("A registration that is sent again while the first one runs finds the same device", arguments: [false, true])
  func repeated(withFleetToken: Bool) throws {
    // More at once would be too many attempts from one source.
    let count = 4
    for number in 1...8 {
      let device = try DeviceClient(server)
      let credential =
        withFleetToken
        ? try #require(try server.admin("fleet-token", "add", "fleet\(number)")["token"] as? String)
        : try server.activationCode(for: "alice")
      let devices = try register((0..<count).map { _ in device.registration(credential) }, others: [])
      #expect(devices.count == count && Set(devices).count == 1)
    }
  }

  @Test("A code registers one of several devices") func oneOfSeveral() throws {
    let code = try server.activationCode(for: "alice")
    let commands = try (0..<4).map { _ in try DeviceClient(server).registration(code) }
    #expect(try register(commands, others: [401]).count == 1)
  }

  @Test("A fleet token registers as many devices as it may") func fleet() throws {
    let token = try #require(try server.admin("fleet-token", "add", "fleet")["token"] as? String)
    let commands = try (0..<12).map { _ in try DeviceClient(server).registration(token) }
    // Each server slows down a source after two attempts that find the fleet full.
    #expect(Set(try register(commands, others: [403, 429])).count == 5)
  }

  @Test("A code is redeemed for one profile, however often it is sent") func profile() throws {
    let device = try DeviceClient(server)
    let code = try server.activationCode(for: "alice")
    try device.register(code).expect(201)
    let fields = [
      "grant_type=\(Grant.preAuthorizedCode)", "pre-authorized_code=\(code)", "profile_id=\(device.profileID)",
    ]
    // It brings the nonce for the others.
    try device.token(fields).expect(200)
    let replies = try server.curl.race((0..<8).map { _ in (try device.tokenArguments(fields), nil) })
    #expect(replies.allSatisfy { $0.status == 200 }, "\(replies.map(\.status))")
    let database = try #require(TestDeployment.database(of: server.directory))
    #expect(try TestPostgreSQL.query("SELECT COUNT(*) FROM profile", in: database) == "1\n")
  }
}
