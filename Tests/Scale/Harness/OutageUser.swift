// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import Foundation
import ReferenceProtocol
import Secrets
import ServerTestSupport

/// A user with a device. Answers are repeated, as a token repeats them, until there is a response; the counts in it are
/// compared with the user's own. For one thread at a time.
final class OutageUser: @unchecked Sendable {
  let name: String
  private let scene: OutageScene
  private var random: SeededGenerator
  private(set) var device: DeviceClient
  /// The number of wrong PINs since the last right one, at least and at most: a PIN that was sent once and got no
  /// response may be counted.
  private var failures = 0...0
  /// The first act is to use up all attempts.
  private var mustReachLimit: Bool

  init(_ name: String, in scene: OutageScene, seed: UInt64, reachingLimit: Bool) throws {
    self.name = name
    self.scene = scene
    random = SeededGenerator(seed: seed)
    device = try DeviceClient.enrolledWithPIN(at: scene.server, as: name)
    mustReachLimit = reachingLimit
  }

  func act() throws {
    guard !mustReachLimit else {
      try answerWithPIN(wrong: OutageScene.pinLimit)
      mustReachLimit = false
      return
    }
    switch Int.random(in: 0..<8, using: &random) {
    case 0...2: _ = try answer()
    case 3: _ = try scene.begin(Bool.random(using: &random) ? "login" : "payment", of: name, on: device)
    case 4: logInWithWrongPINOnce()
    default: try answerWithPIN(wrong: Int.random(in: 0...OutageScene.pinLimit, using: &random))
    }
  }

  /// The server's count of failures is the user's.
  func judge() throws {
    let counted = try repeated { try device.failureCounts() }?.previousFailureCount
    if counted.map({ !failures.contains($0) }) ?? true {
      scene.record.violated("\(name): \(counted.map { "\($0)" } ?? "no") failures instead of \(failures)")
    }
  }

  /// Approves or denies a request.
  /// - Returns: its transaction.
  func answer() throws -> String {
    let transaction = try scene.begin("login", of: name, on: device)
    let decision: ApprovalAnswer.Decision = Bool.random(using: &random) ? .accept : .deny
    let answer = try repeated { try device.answer(transaction, decision) }
    scene.record.mayEnd(transaction, decision == .accept ? .accepted : .denied)
    let reply = try send(answer, to: transaction)
    guard let receipt = receipt(in: reply, transaction) else { return transaction }
    scene.record.ended(transaction)
    guard let other = try? device.answer(transaction, decision == .accept ? .deny : .accept),
      let changed = try? device.send(other, to: transaction), changed.status == 200
    else { return transaction }
    if try changed.decoded(RequestStatus.self).receipt != receipt {
      scene.record.violated("\(transaction): answered twice: \(changed.text)")
    }
    return transaction
  }

  /// Types wrong PINs and then, if any attempt is left, the right one.
  private func answerWithPIN(wrong: Int) throws {
    let transaction = try scene.begin("payment", of: name, on: device)
    let fetched = try repeated { try device.fetch(transaction) }
    var nonce: String?
    for attempt in 1...(wrong + 1) {
      let isRight = attempt > wrong
      let isLast = failures.upperBound + 1 >= OutageScene.pinLimit
      let answer = try device.answerWithPIN(fetched, isRight ? nil : .wrong, attempt: attempt, nonce: nonce)
      if isRight { scene.record.mayEnd(transaction, .accepted) }
      if !isRight, isLast {
        scene.record.mayEnd(transaction, .pinLimit)
        scene.record.mayDeregister(device.clientID)
      }
      let reply = try send(answer, to: transaction)
      scene.record.verifiedPIN(for: transaction)
      if isRight {
        guard receipt(in: reply, transaction) != nil else { return }
        failures = 0...0
        return scene.record.ended(transaction)
      }
      guard counted(reply) else { return try enrollAgain(after: transaction) }
      scene.record.concluded(device.clientID, isDeregistered: false)
      nonce = try reply.decoded(Problem.self).nonce
    }
  }

  /// Sends a wrong PIN once, whatever becomes of it; never the last attempt.
  private func logInWithWrongPINOnce() {
    guard failures.upperBound + 1 < OutageScene.pinLimit else { return }
    let before = failures
    failures = before.lowerBound...(before.upperBound + 1)
    guard let reply = try? device.logInWithPIN(.wrong), reply.status == 400, let count = reply.counts[1] else { return }
    if !(before.lowerBound + 1...before.upperBound + 1).contains(count) {
      scene.record.violated("\(name): \(before) failures before \(reply.text)")
    }
    failures = count...count
  }

  /// Notes the counts in the response to a wrong PIN.
  /// - Returns: whether attempts are left.
  private func counted(_ reply: Curl.Reply) -> Bool {
    let limit = OutageScene.pinLimit
    let possible = failures.lowerBound + 1...failures.upperBound + 1
    guard let count = reply.counts[1], possible.contains(count), reply.counts == [limit, count, limit - count],
      reply.status == (count < limit ? 422 : 403)
    else {
      scene.record.violated("\(name): \(failures) failures before \(reply.status) \(reply.text)")
      return reply.status == 422
    }
    failures = count...count
    return count < limit
  }

  /// After the last attempt, when the right PIN comes too late.
  private func enrollAgain(after transaction: String) throws {
    scene.record.ended(transaction)
    scene.record.concluded(device.clientID, isDeregistered: true)
    if try replied({ try device.logInWithPIN() }).status == 200 {
      scene.record.violated("\(name): the right PIN after the last attempt")
    }
    device = try repeated { try DeviceClient.enrolledWithPIN(at: scene.server, as: name) }
    failures = 0...0
  }

  private func receipt(in reply: Curl.Reply, _ transaction: String) -> String? {
    let receipt = reply.status == 200 ? (try? reply.decoded(RequestStatus.self))?.receipt : nil
    if receipt == nil { scene.record.violated("\(transaction): no receipt: \(reply.status) \(reply.text)") }
    return receipt
  }

  /// Sends an answer until there is a response; sometimes two copies at the same time, and sometimes again afterwards.
  private func send(_ answer: SealedAnswer, to transaction: String) throws -> Curl.Reply {
    let key = Random.uuid()
    var replies: [Curl.Reply] = []
    if Int.random(in: 0..<4, using: &random) == 0 {
      let headers = ["Idempotency-Key: \(key)"]
      let commands = try (0..<2).map { _ -> Curl.Command in
        (
          try device.arguments("POST", "/device/v1/requests/\(transaction)/answers", headers: headers),
          JSON.encode(answer)
        )
      }
      replies += ((try? scene.server.curl.race(commands)) ?? []).filter { [200, 403, 422].contains($0.status) }
    }
    for _ in 0...Int.random(in: 0...1, using: &random) {
      replies.append(try replied { try device.send(answer, to: transaction, key: key) })
    }
    func content(_ reply: Curl.Reply) -> [String?] {
      let status = try? reply.decoded(RequestStatus.self)
      let counts = reply.counts.map { $0.map { "\($0)" } }
      return ["\(reply.status)", status?.state.rawValue, status?.receipt, reply.json["nonce"] as? String] + counts
    }
    if Set(replies.map(content)).count > 1 {
      scene.record.violated("\(transaction): different responses to one answer: \(replies.map(\.text))")
    }
    return replies[0]
  }

  /// Repeats a call until a server has judged it.
  private func replied(_ call: () throws -> Curl.Reply) throws -> Curl.Reply {
    do {
      return try repeated {
        let reply = try call()
        guard reply.status < 500, reply.status != 429 else { throw Curl.CurlError(description: "\(reply.status)") }
        return reply
      }
    } catch {
      scene.record.violated("\(name): no server answers: \(error)")
      throw error
    }
  }

  private func repeated<Value>(_ body: () throws -> Value) throws -> Value {
    for _ in 0..<150 {
      if let value = try? body() { return value }
      usleep(100_000)
    }
    return try body()
  }
}

extension SecretBytes {
  fileprivate static var wrong: SecretBytes { Random.secret(32) }
}
