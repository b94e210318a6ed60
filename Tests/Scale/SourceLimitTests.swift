// SPDX-License-Identifier: Apache-2.0
import Foundation
import ReferenceProtocol
import ServerTestSupport
import Testing

/// The load balancer tells the servers who its clients are.
@Suite(.timeLimit(.minutes(10)), .serialized) struct SourceLimitTests {
  @Test("Wrong activation codes are limited for each client, in sum over the servers") func wrongCodes() throws {
    let server = try TokenServerProcess(servers: 2)
    let device = try DeviceClient(server)
    // Each server counts the running ones every two seconds.
    usleep(3_000_000)
    func guess(from address: String) throws -> Int {
      try device.register(ActivationCode.random().digits, from: address).status
    }
    let statuses = try (0..<16).map { _ in try guess(from: "127.0.0.2") }
    let judged = statuses.count { $0 == 401 }
    // Ten a minute; each server grants its half, and one more may be granted while the test runs.
    #expect((10...12).contains(judged), "\(statuses)")
    #expect(statuses.suffix(4).allSatisfy { $0 == 429 })
    #expect(try guess(from: "127.0.0.3") == 401)
  }
}
