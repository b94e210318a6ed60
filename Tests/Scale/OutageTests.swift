// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import Foundation
import ReferenceProtocol
import Secrets
import ServerTestSupport
import Synchronization
import Testing

/// Servers that are killed, and a database that is restarted, while users answer.
@Suite(.timeLimit(.minutes(15)), .serialized) struct OutageTests {
  /// `SCALE_DEVICES` and `SCALE_SECONDS` make it larger; `SCALE_SEED` repeats a run.
  private static let devices = environment("SCALE_DEVICES") ?? 12
  private static let seconds = environment("SCALE_SECONDS") ?? 30

  private static func environment(_ name: String) -> Int? {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
  }

  private static let configuration = """
    [limits]
    open_requests_per_device = 1000
    [[type]]
    name = "login"
    method = "push"
    request_expires_in = 600
    messages = { en = "Log in?" }
    """

  @Test("No answer is lost after its receipt, and none is changed", arguments: [2, 4])
  func outages(servers: Int) throws {
    let seed = Self.environment("SCALE_SEED").map { UInt64($0) } ?? .random(in: 0...UInt64.max)
    var random = SeededGenerator(seed: seed)
    print("outages of \(servers) servers: SCALE_SEED=\(seed)")
    let server = try TokenServerProcess(configuration: Self.configuration, servers: servers)
    let group = try #require(server.group)
    let portal = try server.addPortal()
    let devices = try (0..<Self.devices).map { number in
      try DeviceClient.enrolled(at: server, as: "user\(number)")
    }
    let deadline = ContinuousClock.now + .seconds(Self.seconds)
    let answered = Mutex<[Answered]>([])
    let faults = Mutex<[String: Int]>([:])
    let seeds = devices.map { _ in random.next() }
    let running = DispatchGroup()
    for (number, device) in devices.enumerated() {
      running.enter()
      let user = UncheckedDevice(device: device, name: "user\(number)")
      Thread.detachNewThread {
        var random = SeededGenerator(seed: seeds[number])
        while ContinuousClock.now < deadline {
          do {
            let one = try user.answerOnce(portal, server, &random)
            answered.withLock { $0.append(one) }
          } catch { faults.withLock { $0["\(error)", default: 0] += 1 } }
        }
        running.leave()
      }
    }
    var outages = 0
    while ContinuousClock.now < deadline {
      usleep(UInt32.random(in: 200_000...1_200_000, using: &random))
      if outages % 6 == 5 {
        try TestPostgreSQL.restart()
      } else {
        try group.restart(Int.random(in: 0..<servers, using: &random))
      }
      outages += 1
    }
    running.wait()
    let all = answered.withLock(\.self)
    print("\(all.count) answers, \(all.filter { $0.receipt != nil }.count) receipts, \(outages) outages")
    #expect(all.count { $0.receipt != nil } > devices.count, "\(faults.withLock { $0 })")
    for one in all { try judge(one, portal, server, servers: servers) }
    #expect(Set(all.map(\.transaction)).count == all.count)
  }

  /// The portal reads the same at each server.
  private func judge(
    _ one: Answered, _ portal: (id: String, secret: String), _ server: TokenServerProcess, servers: Int
  ) throws {
    for _ in 0..<servers {
      let result = try server.curl(
        "--user", "\(portal.id):\(portal.secret)",
        server.url + "/oauth/api/v4/authenticate/transaction/\(one.transaction)"
      ).expect(200).json
      let isAuthenticated = result["is_authenticated"] as? Bool
      if one.receipt != nil {
        #expect(isAuthenticated == (one.decision == .accept), "\(one.transaction)")
      } else if isAuthenticated == true {
        // Without a receipt the answer may have arrived.
        #expect(one.decision == .accept, "\(one.transaction)")
      }
    }
  }
}

/// What a device did, for the judge.
private struct Answered: Sendable {
  let transaction: String
  let decision: ApprovalAnswer.Decision
  /// Nil if the device got none.
  let receipt: String?
}

/// One device on a thread of its own.
private struct UncheckedDevice: @unchecked Sendable {
  let device: DeviceClient
  let name: String

  /// Starts a request and answers it, with repetitions until there is a receipt; then tries to change the answer.
  func answerOnce(
    _ portal: (id: String, secret: String), _ server: TokenServerProcess, _ random: inout SeededGenerator
  ) throws -> Answered {
    let started = try server.curl(
      "--user", "\(portal.id):\(portal.secret)", "--data", "type=login&user_id=\(name)&device_id=\(device.clientID)",
      "--data", "callback_uri=https://portal.example/", server.url + "/oauth/api/v4/authenticate/user"
    ).expect(200)
    let transaction = try #require(started.json["transaction_id"] as? String)
    let decision: ApprovalAnswer.Decision = Bool.random(using: &random) ? .accept : .deny
    let answer = try repeated { try device.answer(transaction, decision) }
    let key = Random.uuid()
    var receipt: String?
    _ = try? repeated {
      let reply = try device.send(answer, to: transaction, key: key)
      guard reply.status == 200 else { throw Curl.CurlError(description: "\(reply.status)") }
      receipt = try reply.decoded(RequestStatus.self).receipt
    }
    if receipt != nil, let other = try? device.answer(transaction, decision == .accept ? .deny : .accept) {
      let reply = try? device.send(other, to: transaction)
      #expect(reply?.status != 200 || (try? reply?.decoded(RequestStatus.self).receipt) == receipt)
    }
    return Answered(transaction: transaction, decision: decision, receipt: receipt)
  }

  private func repeated<Value>(_ body: () throws -> Value) throws -> Value {
    for _ in 0..<100 {
      if let value = try? body() { return value }
      usleep(100_000)
    }
    return try body()
  }
}
