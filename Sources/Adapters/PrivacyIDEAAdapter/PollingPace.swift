// SPDX-License-Identifier: Apache-2.0
/// Polling intervals. The short interval is used only while a user may be waiting, because a server has many tokens.
package struct PollingPace: Sendable, Equatable {
  /// The interval while a challenge is open, or was until recently.
  package var fast = Duration.seconds(3)
  /// The interval otherwise: the longest delay from the start of a login to its indication.
  package var idle = Duration.seconds(10)
  /// How long after the last open challenge, and after a start, the short interval is used.
  package var expectation = Duration.seconds(60)
  /// How long a challenge is shown. Servers do not report its lifetime: increase this if the server's is longer
  /// (default 120 s).
  package var lifetime = Duration.seconds(120)
  /// The minimum time from the first refusal of a token to the question whether it is deleted, which uses a new TLS
  /// connection: neither refusals nor the response are signed.
  package var untilQuestion = Duration.seconds(60)

  package init() {}

  /// The interval after a hint whose round found nothing new.
  static let afterHint = Duration.seconds(1)
  /// The interval for a token that the server does not allow to poll, or refuses without saying that it is deleted:
  /// that may be temporary.
  static let refused = Duration.seconds(300)
  /// The number of refusals in a row before the server is asked whether the token is deleted.
  static let refusalsBeforeQuestion = 4
  private static let longest = Duration.seconds(60)

  /// - Parameters:
  ///   - quiet: the time since a challenge was open or polling began.
  ///   - random: uniform in 0..<1; keeps tokens that started together from polling at the same time.
  func interval(quiet: Duration, random: Double) -> Duration {
    (quiet < expectation ? fast : idle) * (0.9 + random * 0.2)
  }

  /// The pause after a question that found no deletion. Each is as long as the refusals so far, at most a day:
  /// privacyIDEA 3.14 notes every question as a failed answer of the token's user.
  static func untilNextQuestion(refusedFor time: Duration) -> Duration { min(max(refused, time), .seconds(86_400)) }

  /// - Parameter failures: the number of failures in a row.
  func backOff(failures: Int, random: Double) -> Duration {
    min(fast * (1 << min(failures, 10)), Self.longest) * (0.5 + random / 2)
  }
}
