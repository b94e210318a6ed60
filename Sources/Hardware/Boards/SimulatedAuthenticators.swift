// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import MobileAuth
import Secrets
import Synchronization

/// The authenticators of the simulated board: each use waits for what the user does. Several can be asked at a time.
package final class SimulatedAuthenticators: Sendable {
  /// What is simulated.
  package enum Kind: Sendable, Equatable { case custom, securityKey, badge, fingerprint }

  private struct Waiting {
    let number: Int
    let kind: Kind
    let call: DriverCall
    let continuation: AsyncStream<DriverEvent>.Continuation
  }

  private struct State {
    var uses = 0
    /// One use of each authenticator at most, the last one at the end.
    var waiting: [Waiting] = []
    var absent: [Kind] = []
  }

  private let state = Mutex(State())

  package init() {}

  /// Gives an event to the driver that is asked now; of several, to the one that was asked last.
  /// - Returns: false if none is asked.
  package func perform(_ event: DriverEvent) -> Bool { perform(event) { _ in true } }

  /// Touches the security key.
  /// - Returns: false if it is not asked.
  package func touch() throws -> Bool {
    set(.securityKey, isPresent: true)
    guard let call = asked(.securityKey) else { return false }
    return perform(.data(try SimulatedSigner("key").securityKey(call))) { $0.kind == .securityKey }
  }

  /// Inserts the badge with this name, and removes it.
  /// - Returns: false if no badge is asked.
  package func insert(badge name: String) throws -> Bool {
    set(.badge, isPresent: true)
    guard let call = asked(.badge) else { return false }
    return perform(.data(try SimulatedSigner("badge \(name)").badge(call))) { $0.kind == .badge }
  }

  /// Puts the finger with this name on the reader. The registered one matches.
  /// - Returns: false if no finger is asked for.
  package func present(finger name: String) -> Bool {
    guard let call = asked(.fingerprint) else { return false }
    let none = SecretBytes(copying: [])
    let event: DriverEvent =
      switch call.step {
      case .register: .data(AuthenticatorData(none, registration: Array(name.utf8)))
      case .authenticate where Array(name.utf8) != call.registration: .canceled(FingerprintDriver.noMatch)
      case .authenticate, .deregister: .data(AuthenticatorData(none))
      }
    return perform(event) { $0.kind == .fingerprint }
  }

  /// Plugs the reader of a kind in, or out.
  package func set(_ kind: Kind, isPresent: Bool) {
    let waiting = state.withLock { state in
      state.absent.removeAll { $0 == kind }
      if !isPresent { state.absent.append(kind) }
      return !isPresent && state.waiting.contains { $0.kind == kind }
    }
    if waiting { _ = perform(.failed("unplugged")) { $0.kind == kind } }
  }

  /// Whether a driver is asked now.
  package var isAsked: Bool { state.withLock { !$0.waiting.isEmpty } }

  private func asked(_ kind: Kind) -> DriverCall? {
    state.withLock { $0.waiting.last { $0.kind == kind }?.call }
  }

  private func perform(_ event: DriverEvent, if isMeant: (Waiting) -> Bool) -> Bool {
    let waiting = state.withLock { state -> Waiting? in
      guard let index = state.waiting.lastIndex(where: isMeant) else { return nil }
      return event.isAnswer ? state.waiting.remove(at: index) : state.waiting[index]
    }
    guard let waiting else { return false }
    waiting.continuation.yield(event)
    // Not while the lock is held: the end of the stream takes it.
    if event.isAnswer { waiting.continuation.finish() }
    return true
  }

  fileprivate func isPresent(_ kind: Kind) -> Bool { state.withLock { !$0.absent.contains(kind) } }

  fileprivate func events(_ kind: Kind, _ call: DriverCall) -> AsyncStream<DriverEvent> {
    AsyncStream { continuation in
      let (number, former) = state.withLock { state in
        let former = state.waiting.filter { $0.call.authenticator == call.authenticator }
        state.waiting.removeAll { $0.call.authenticator == call.authenticator }
        state.uses += 1
        state.waiting.append(Waiting(number: state.uses, kind: kind, call: call, continuation: continuation))
        return (state.uses, former)
      }
      for use in former { use.continuation.finish() }
      continuation.onTermination = { [weak self] _ in
        self?.state.withLock { $0.waiting.removeAll { $0.number == number } }
      }
    }
  }
}

/// An authenticator of the simulated board.
package struct SimulatedDriver: AuthenticatorDriver {
  package let authenticator: String
  package var kind: Authenticator.Kind { simulated == .fingerprint ? .biometric : .custom }
  /// A badge proves no act of its user.
  package var input: DriverInput { .external(hold: simulated == .badge) }
  package var isAvailable: Bool { all.isPresent(simulated) }
  private let simulated: SimulatedAuthenticators.Kind
  private let all: SimulatedAuthenticators

  package init(
    _ authenticator: String, as simulated: SimulatedAuthenticators.Kind = .custom, of all: SimulatedAuthenticators
  ) {
    self.authenticator = authenticator
    self.simulated = simulated
    self.all = all
  }

  package func events(for call: DriverCall) -> AsyncStream<DriverEvent> { all.events(simulated, call) }
}
