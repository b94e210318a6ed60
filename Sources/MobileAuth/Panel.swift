/// What a person sees and touches.
public protocol Panel: Sendable {
  /// Shows a state until the next call. `confirmed` and `denied` are played to their end before this returns, so
  /// that the next request cannot hide how the last one ended.
  func show(_ indication: Indication) async

  /// Arms the panel for one challenge. The stream ends after a gesture, or when its consumer stops; the panel is
  /// disarmed then. Whatever was touched before this call counts for nothing.
  func events(for challenge: Challenge) -> AsyncStream<PanelEvent>
}

public enum PanelEvent: Sendable, Equatable {
  /// The first touch that counts: the request is pinned from here on.
  case touched
  /// The touch ended and was no gesture: the request is no longer pinned.
  case released
  case gesture(Gesture)
  /// Down for longer than anybody means it; counts for nothing until released.
  case stuck
  /// The hardware is gone or failing: nothing can be approved until it is back, which the panel notices by itself.
  case unavailable(String)
}

/// What the LED says.
public enum Indication: Sendable, Equatable {
  /// Connected to every token server; `pending` requests wait.
  case idle(pending: Int)
  case disconnected
  case confirmationWanted
  /// The button is down long enough to accept when released.
  case releaseToAccept
  /// The button is down long enough to report "not me" when released.
  case releaseToReport
  case talkingToServer
  case confirmed
  case denied
  case outcomeUnknown
  case mustEnrol
  case misconfigured
}
