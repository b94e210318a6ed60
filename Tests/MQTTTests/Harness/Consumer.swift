// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import MQTT
import ProgramHarness
import Secrets

extension TestBroker {
  func broker(
    host: String = "localhost", trust: ServerTrust? = nil, user: String = TestBroker.user,
    password: String? = TestBroker.password, version: Broker.Version = .v5
  ) -> Broker {
    Broker(
      host: host, port: UInt16(port), trust: trust ?? ServerTrust(authorityFile: authority),
      credentials: password.map { Broker.Credentials(user: user, password: SecretBytes(copying: Array($0.utf8))) },
      version: version)
  }
}

/// A task that reads a mailbox, and a record of its messages and reports.
final class Consumer: Sendable {
  struct Seen: Sendable, Equatable {
    var messages: [String] = []
    /// The topics of the messages.
    var topics: [String] = []
    var reports: [Subscriber.Report] = []
    var pauses: [Duration] = []
  }

  let seen = Observed(Seen())
  private let task: Task<Void, any Error>

  /// - Parameters:
  ///   - sleep: waits before the next connection; short by default.
  ///   - takes: whether a message is stored and so acknowledged.
  init(
    of broker: Broker, topics: Set<String> = ["mailbox/1"], clientID: String = "token1", presence: String? = nil,
    random: @escaping @Sendable () -> Double = { 0 },
    sleep: @escaping @Sendable (Duration) async throws -> Void = { _ in try await Task.sleep(for: .milliseconds(50)) },
    takes: @escaping @Sendable (String) async -> Bool = { _ in true }
  ) {
    let seen = seen
    let mailbox = Subscriber(
      at: broker, topics: topics, clientID: clientID, presence: presence, random: random,
      report: { report in seen.change { $0.reports.append(report) } },
      sleep: { pause in
        seen.change { $0.pauses.append(pause) }
        try await sleep(pause)
      })
    task = Task {
      try await mailbox.run { message, topic in
        let text = String(decoding: message, as: UTF8.self)
        seen.change { seen in
          seen.messages.append(text)
          seen.topics.append(topic)
        }
        return await takes(text)
      }
    }
  }

  deinit { task.cancel() }

  /// Waits until the topic has been subscribed to `count` times.
  func isConnected(_ count: Int = 1, to topic: String = "mailbox/1") async throws {
    try await sees("connection \(count) to \(topic)") {
      $0.reports.count { $0 == .connected(topic: topic) } >= count
    }
  }

  func got(_ messages: [String]) async throws {
    try await sees("\(messages)") { $0.messages == messages }
  }

  func sees(
    _ what: String, within limit: Duration = patience, _ condition: @escaping @Sendable (Seen) -> Bool
  ) async throws {
    guard await seen.first(within: limit, { condition($0) ? true : nil }) != nil else {
      throw OutputTimeoutError(
        description: "\(what), but \(seen.value.messages.suffix(5)), \(seen.value.reports.suffix(5))")
    }
  }

  func stop() async {
    task.cancel()
    _ = try? await task.finished()
  }
}

extension ExitSettings {
  var broker: Broker {
    Broker(
      host: "localhost", port: UInt16(port), trust: ServerTrust(authorityFile: authority),
      credentials: Broker.Credentials(
        user: TestBroker.user, password: SecretBytes(copying: Array(TestBroker.password.utf8))))
  }
}
