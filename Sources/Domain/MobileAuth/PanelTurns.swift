// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Shares the panel between the token servers: valid requests of one server do not keep those of the others away.
///
/// A server has its turn while its requests are on the panel, one after the other. Requests of the server that lost the
/// panel longest ago come first, after those of servers that did not lose it recently. A turn that has lasted `length`
/// ends when a request of another server is ready.
final class PanelTurns: Sendable {
  /// How long the requests of one server can stay on the panel while requests of other servers wait and the user does
  /// not touch the panel. Also how long a touch, a wrong entry or the user's choice keeps a request on the panel.
  static let length = Duration.seconds(60)
  /// After this time it no longer counts that a server has lost the panel.
  static let memory = Duration.seconds(600)

  fileprivate struct Turn {
    let server: TokenServerID
    let beginning: MonotonicInstant
    /// The arrival number of the request with which the turn began. Later requests of the server count as equally old:
    /// a server that lists more requests does not get before a request that arrived during its turn.
    let number: Int
    /// When its last request left the panel; nil while one is there.
    var left: MonotonicInstant?
    var wasAnswered = false

    var end: MonotonicInstant { beginning + PanelTurns.length }
    func lasts(at now: MonotonicInstant) -> Bool { left.map { now - $0 < PanelTurns.length } ?? true }
  }

  fileprivate struct State {
    var turn: Turn?
    /// When a server's request last left the panel to a request of another server, without an answer.
    var losses: [TokenServerID: MonotonicInstant] = [:]
  }

  private let state = Mutex(State())

  /// Records that a request of the server takes the panel.
  /// - Parameter number: the request's arrival number.
  func begin(_ server: TokenServerID, number: Int, at now: MonotonicInstant) {
    state.withLock { state in
      if let turn = state.turn {
        if turn.server == server, turn.lasts(at: now) {
          state.turn?.left = nil
          state.turn?.wasAnswered = false
          return
        }
        if turn.server != server, !turn.wasAnswered || now >= turn.end {
          state.losses[turn.server] = turn.left ?? now
        }
      }
      state.losses = state.losses.filter { now - $0.value < Self.memory }
      state.turn = Turn(server: server, beginning: now, number: number)
    }
  }

  /// Records that the request has left the panel.
  /// - Parameter isAnswered: whether the user has answered it.
  func leave(isAnswered: Bool, at now: MonotonicInstant) {
    state.withLock { state in
      state.turn?.left = now
      state.turn?.wasAnswered = isAnswered
    }
  }

  /// When the present turn has lasted its time; nil if none lasts.
  func end(at now: MonotonicInstant) -> MonotonicInstant? {
    state.withLock { state in state.turn.flatMap { $0.lasts(at: now) ? $0.end : nil } }
  }

  /// The position of a request among those of all servers. Smaller ones come first.
  struct Position: Comparable {
    private enum Group: Int { case inTurn, lostPanel, turnOver }
    private let group: Group
    private let loss: MonotonicInstant?
    private let number: Int

    fileprivate init(_ state: State, _ server: TokenServerID, _ number: Int, at now: MonotonicInstant) {
      let turn = state.turn.flatMap { $0.server == server && $0.lasts(at: now) ? $0 : nil }
      let recent = state.losses[server].flatMap { now - $0 < PanelTurns.memory ? $0 : nil }
      self.number = turn.map { min(number, $0.number) } ?? number
      loss = recent
      group = turn.map { $0.end <= now } == true ? .turnOver : recent == nil ? .inTurn : .lostPanel
    }

    static func < (one: Self, other: Self) -> Bool {
      if one.group != other.group { return one.group.rawValue < other.group.rawValue }
      if let first = one.loss, let second = other.loss, first != second { return first < second }
      // Newest first.
      return one.number > other.number
    }
  }

  /// Sorts requests of several servers.
  /// - Parameter requests: newest first, with their arrival numbers.
  func sort(
    _ requests: [(request: PendingMobileAuthRequest, number: Int)], at now: MonotonicInstant
  ) -> [PendingMobileAuthRequest] {
    let positions = state.withLock { state in
      requests.map { Position(state, $0.request.server, $0.number, at: now) }
    }
    return requests.indices.sorted { (positions[$0], $0) < (positions[$1], $1) }.map { requests[$0].request }
  }
}
