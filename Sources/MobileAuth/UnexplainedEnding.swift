extension PendingMobileAuthRequest {
  /// The longest interval between two readings of a list with open requests. A request may have left the list at any time
  /// within it.
  private static let latestList = Duration.seconds(15)

  /// How a request ended that has left its server's list, where the server does not say how: only when is known.
  func unexplainedEnding(at now: Moment) -> String {
    deadline - now <= Self.latestList
      ? "ended at the token server at the end of its time: it probably expired"
      : "ended at the token server before the end of its time; how is not known"
  }
}
