import Courier
import MobileAuth
import Synchronization

/// What a server, or a proxy in its place, has said about enrollments that are gone, until it counts.
///
/// A revocation that is signed with the enrollment's key counts at once. An unsigned 9002, 9003, 9020 or 9021 stops what
/// it is about, and counts when a second ask, over a new TLS connection, with a new access token and at least `pause`
/// later, says the same. Kept in memory: after a restart the first one is the first again.
final class Revocations: Sendable {
  enum Subject: Hashable, Sendable {
    case device
    /// Nil where the answer does not say which.
    case profile(String?)
    /// The keys or the push enrollment of the profile; nil as in `profile`.
    case keys(String?)
  }

  /// Between the first ask and the second.
  static let pause = Duration.seconds(60)

  private struct State {
    var claims: [Subject: Moment] = [:]
    var onClaim: AsyncStream<Void>.Continuation?
    var proofs: @Sendable (HTTPResponse) -> Set<Subject> = { _ in [] }
  }

  private let state = Mutex(State())
  private let timekeeper: any Timekeeper

  init(_ timekeeper: any Timekeeper) { self.timekeeper = timekeeper }

  /// - Parameter proofs: what a response proves, by notices that the server has signed with the keys of the enrollments;
  ///   nothing until this is called.
  func use(proofs: @escaping @Sendable (HTTPResponse) -> Set<Subject>) { state.withLock { $0.proofs = proofs } }

  private func isProven(_ subject: Subject, by response: HTTPResponse) -> Bool {
    let proofs = state.withLock { $0.proofs }
    return proofs(response).contains { $0 == .device || $0 == subject }
  }

  /// - Parameters:
  ///   - profile: what the call was about, if its address says so.
  ///   - isSecondAsk: it went over a new connection with a new token.
  /// - Returns: the fault as it is if it counts, or is about something else.
  func judge(
    _ fault: TokenServerFault, _ response: HTTPResponse, about profile: String?, isSecondAsk: Bool
  ) -> TokenServerFault {
    let subject: Subject
    switch fault {
    case .deviceDeregistered: subject = .device
    case .userDeregistered: subject = .profile(profile)
    case .disenrolled, .notEnrolled: subject = .keys(profile)
    default: return fault
    }
    if isProven(subject, by: response) { return fault }
    return counts(subject, isSecondAsk: isSecondAsk) ? fault : .unconfirmedRemoval(number: fault.number)
  }

  /// - Returns: whether it counts; if not, it is remembered.
  func counts(_ subject: Subject, in response: HTTPResponse? = nil, isSecondAsk: Bool) -> Bool {
    if let response, isProven(subject, by: response) { return true }
    let now = timekeeper.now
    let listener = state.withLock { state -> AsyncStream<Void>.Continuation?? in
      var first = state.claims[subject]
      switch subject {
      case .device: break
      case .profile: first = [first, state.claims[.profile(nil)]].compactMap(\.self).min()
      case .keys: first = [first, state.claims[.keys(nil)]].compactMap(\.self).min()
      }
      if isSecondAsk, let first, now - first >= Self.pause { return nil }
      if state.claims[subject] == nil { state.claims[subject] = now }
      return state.onClaim
    }
    guard let listener else { return true }
    listener?.yield()
    return false
  }

  /// When the second ask is due; nil if there is nothing to ask.
  var secondAsk: Moment? { state.withLock { $0.claims.values.min() }.map { $0 + Self.pause } }

  var isSecondAskDue: Bool { secondAsk.map { $0 <= timekeeper.now } ?? false }

  /// The second ask was answered without them.
  func forget(all subjects: (Subject) -> Bool) {
    state.withLock { state in state.claims = state.claims.filter { !subjects($0.key) } }
  }

  /// Whether nothing may be shown or answered for the profile.
  func isStopped(_ profile: String) -> Bool {
    state.withLock { state in
      [.device, .profile(nil), .profile(profile), .keys(nil), .keys(profile)].contains { state.claims[$0] != nil }
    }
  }

  /// Calls `ask` whenever a second ask has become due, until the task is cancelled. One caller at a time.
  func watch(_ ask: @Sendable () -> Void) async throws {
    let (claims, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    state.withLock { state in
      state.onClaim = continuation
      if !state.claims.isEmpty { continuation.yield() }
    }
    for await _ in claims {
      guard let due = secondAsk else { continue }
      try await timekeeper.sleep(until: due)
      ask()
    }
    try Task.checkCancellation()
  }
}
