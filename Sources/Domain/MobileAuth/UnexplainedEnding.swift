// SPDX-License-Identifier: Apache-2.0
extension PendingMobileAuthRequest {
  /// The longest interval between two readings of a list with open requests. A request may have left the list at any
  /// time within it.
  private static let latestList = Duration.seconds(15)

  /// Returns the end of a request that disappeared from its server's list without a reason. Only the time is known.
  func unexplainedEnding(at now: MonotonicInstant) -> RequestOutcome {
    .delisted(
      deadline - now <= Self.latestList
        ? "ended at the token server at the end of its time: it probably expired"
        : "ended at the token server before the end of its time; how is not known")
  }
}
