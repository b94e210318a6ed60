// SPDX-License-Identifier: Apache-2.0
/// The result of the service's test of itself: what this board does alone, without a network.
package struct SelfTestResponse: Codable, Sendable {
  package struct Check: Codable, Sendable, Equatable {
    /// `vault`, `panel` or `handler`.
    package var subject: String
    /// Why it failed; nil if it passed.
    package var failure: String?

    package init(subject: String, failure: String?) {
      self.subject = subject
      self.failure = failure
    }
  }

  package var checks: [Check]
  package var passed: Bool { checks.allSatisfy { $0.failure == nil } }

  package init(checks: [Check]) { self.checks = checks }
}
