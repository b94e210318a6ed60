// SPDX-License-Identifier: Apache-2.0
/// The topics of one connection and the state of their subscriptions.
struct TopicSubscriptions {
  private enum Subscription: Equatable {
    /// To be requested at this time.
    case due(ContinuousClock.Instant)
    case requested, granted
  }

  private var subscriptions: [String: Subscription]
  /// The length of the longest topic in bytes. Longer ones are not compared: that takes long for some texts.
  private let longest: Int
  /// Requests without an answer, by packet identifier.
  private var requests: [Int32: String] = [:]
  /// Other topics of which messages arrived.
  private var others: Set<String> = []

  /// The maximum number of other topics that are noted, and the maximum length of each in bytes.
  private static let (mostOthers, longestOther) = (1000, 1024)

  init(_ topics: Set<String>, at now: ContinuousClock.Instant) {
    subscriptions = Dictionary(uniqueKeysWithValues: topics.map { ($0, .due(now)) })
    longest = topics.map(\.utf8.count).max() ?? 0
  }

  func contains(_ topic: String) -> Bool { topic.utf8.count <= longest && subscriptions[topic] != nil }

  /// Whether the broker has refused all topics.
  var areAllRefused: Bool { !subscriptions.values.contains { $0 == .requested || $0 == .granted } }

  /// When the first topic is to be requested; nil if there is none.
  var nextRequest: ContinuousClock.Instant? {
    subscriptions.values.compactMap { if case .due(let moment) = $0 { moment } else { nil } }.min()
  }

  /// The topics to request now, which then count as requested.
  mutating func takeDue(at now: ContinuousClock.Instant) -> [String] {
    let due = subscriptions.compactMap { topic, subscription in
      if case .due(let moment) = subscription, moment <= now { topic } else { nil }
    }
    for topic in due { subscriptions[topic] = .requested }
    return due.sorted()
  }

  mutating func note(request: Int32, of topic: String) { requests[request] = topic }

  /// - Returns: the topic of a request that was granted or refused; nil if the request is unknown.
  mutating func noteAnswer(to request: Int32) -> String? { requests.removeValue(forKey: request) }

  mutating func noteGrant(of topic: String) { subscriptions[topic] = .granted }

  mutating func noteRefusal(of topic: String, at now: ContinuousClock.Instant) {
    subscriptions[topic] = .due(now + Session.refusalPause)
  }

  /// - Returns: whether this is the first message of a topic that is not contained.
  mutating func noteOther(_ topic: String) -> Bool {
    others.count < Self.mostOthers && topic.utf8.count <= Self.longestOther && others.insert(topic).inserted
  }
}
