// SPDX-License-Identifier: Apache-2.0
import HTTP
import MobileAuth
import Synchronization

/// Checks reports that enrollments were removed, which come from the server or from a proxy in its place.
///
/// A revocation that is signed with the enrollment's key takes effect at once. An unsigned 9002, 9003, 9020 or 9021
/// stops its subject. It takes effect when a second query confirms it, over a new TLS connection, with a new access
/// token and at least `pause` later. The state is in memory: after a restart, the next report counts as the first one.
final class Revocations: Sendable {
  enum Subject: Hashable, Sendable {
    case device
    /// Nil if the response does not name the profile.
    case profile(String?)
    /// The keys or the push enrollment of the profile; nil as in `profile`.
    case keys(String?)
  }

  /// The minimum time between the first and the second query.
  static let pause = Duration.seconds(60)

  private struct State {
    var claims: [Subject: MonotonicInstant] = [:]
    var onClaim: AsyncStream<Void>.Continuation?
    var proofs: @Sendable (HTTPResponse) -> Set<Subject> = { _ in [] }
  }

  private let state = Mutex(State())
  private let environment: TokenEnvironment

  init(in environment: TokenEnvironment) { self.environment = environment }

  /// - Parameter proofs: returns what a response proves by notices signed with the enrollments' keys. Until this is
  ///   called, nothing is proven.
  func use(proofs: @escaping @Sendable (HTTPResponse) -> Set<Subject>) { state.withLock { $0.proofs = proofs } }

  /// Checks a fault of a response.
  /// - Parameters:
  ///   - profile: the profile of the call, if known.
  ///   - isSecondAsk: whether the call used a new connection and a new token.
  /// - Returns: the fault itself if it is effective or no removal, else `.unconfirmedRemoval`.
  func check(
    _ fault: TokenServerError, _ response: HTTPResponse, about profile: String?, isSecondAsk: Bool
  ) -> TokenServerError {
    let subject: Subject
    switch fault {
    case .deviceDeregistered: subject = .device
    case .userDeregistered: subject = .profile(profile)
    case .disenrolled, .notEnrolled: subject = .keys(profile)
    default: return fault
    }
    let proofs = state.withLock { $0.proofs }
    return counts(subject, proven: proofs(response), isSecondAsk: isSecondAsk)
      ? fault : .unconfirmedRemoval(number: fault.number)
  }

  /// - Parameter proven: what the response proves by signed notices.
  /// - Returns: whether the removal is effective; otherwise it is recorded as a first report.
  func counts(_ subject: Subject, proven: Set<Subject> = [], isSecondAsk: Bool) -> Bool {
    if proven.contains(.device) || proven.contains(subject) { return true }
    let now = environment.now
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

  /// When the second query is due; nil without a report.
  var secondAsk: MonotonicInstant? { state.withLock { $0.claims.values.min() }.map { $0 + Self.pause } }

  var isSecondAskDue: Bool { secondAsk.map { $0 <= environment.now } ?? false }

  /// Deletes reports that the second query has not confirmed.
  func forget(all subjects: (Subject) -> Bool) {
    state.withLock { state in state.claims = state.claims.filter { !subjects($0.key) } }
  }

  /// Whether requests of the profile must not be shown or answered.
  func isStopped(_ profile: String) -> Bool {
    state.withLock { state in
      [.device, .profile(nil), .profile(profile), .keys(nil), .keys(profile)].contains { state.claims[$0] != nil }
    }
  }

  /// Calls `ask` whenever a second query is due, until the task is canceled. Supports one caller at a time.
  func watch(_ ask: @Sendable () -> Void) async throws {
    let (claims, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    state.withLock { state in
      state.onClaim = continuation
      if !state.claims.isEmpty { continuation.yield() }
    }
    for await _ in claims {
      guard let due = secondAsk else { continue }
      try await environment.sleep(until: due)
      ask()
    }
    try Task.checkCancellation()
  }
}
