// SPDX-License-Identifier: Apache-2.0
import Foundation
import ReferenceProtocol
import ServerTestSupport
import Testing

/// Rate limits of several servers together. The load balancer tells them who its clients are.
@Suite(.timeLimit(.minutes(10)), .serialized) struct RateLimitTests {
  @Test("Wrong activation codes are limited for each client, in sum over the servers") func wrongCodes() throws {
    let server = try TokenServerProcess(servers: 2)
    let device = try DeviceClient(server)
    // Each server counts the running ones every two seconds.
    usleep(3_000_000)
    func guess(from address: String) throws -> Int {
      try device.register(ActivationCode.random().digits, from: address).status
    }
    // On a busy machine more is granted while one guesses: one client that gets exactly the limit is enough.
    var isExact = false
    for number in [2, 4, 5, 6] {
      let start = ContinuousClock.now
      let statuses = try (0..<16).map { _ in try guess(from: "127.0.0.\(number)") }
      // Ten a minute; each server grants its half, and one more may be granted while the test runs.
      let granted = statuses.count { $0 == 401 }
      let time = start.duration(to: .now) / .seconds(1)
      #expect(Double(granted) <= 10 + time / 6 + 2, "\(granted) in \(time) s")
      isExact = isExact || (10...12).contains(granted) && statuses.suffix(4).allSatisfy { $0 == 429 }
    }
    #expect(isExact)
    #expect(try guess(from: "127.0.0.3") == 401)
  }

  @Test("The calls of a device are limited in sum over the servers") func calls() throws {
    let limit = 5
    let server = try TokenServerProcess(
      configuration: """
        [limits]
        device_requests_per_second = \(limit)
        [[type]]
        name = "login"
        method = "push"
        """, servers: 2)
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    usleep(3_000_000)
    let commands = try (0..<60).map { _ -> Curl.Command in (try device.arguments("GET", "/device/v1/pending"), nil) }
    let start = ContinuousClock.now
    let statuses = try server.curl.race(commands).map(\.status)
    let time = start.duration(to: .now) / .seconds(1)
    #expect(Set(statuses) == [200, 429])
    // Twice the rate at once, and what is granted meanwhile; one more for each server, as requests are whole.
    let granted = statuses.count { $0 == 200 }
    #expect(granted >= 2 * limit, "\(statuses)")
    #expect(Double(granted) <= Double(2 * limit) + time * Double(limit) + 2, "\(granted) in \(time) s")
  }
}
