// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The attempts of this process to reach a broker. libmosquitto resolves a name, and connects to one address after the
/// other, each until the kernel gives up, in one call that cannot be interrupted.
enum Attempts {
  /// How an attempt is made.
  struct Plan: Sendable {
    /// The local address to connect from: with one, libmosquitto skips the broker's addresses of the other kind.
    let source: String?
    /// By how much the time limit is extended.
    var patience = 1
  }

  /// The limit of calls for which no connection waits any more: at the limit, no call begins. Each keeps a thread.
  static let mostAbandoned = 4

  /// After a time-out the next plan is used: an address that does not respond may keep others from being tried. The
  /// last one has time for those of the same kind.
  static let plans = [
    Plan(source: nil), Plan(source: "0.0.0.0"), Plan(source: "::"), Plan(source: nil, patience: longestPatience),
  ]
  static let longestPatience = 15
  /// `connected` is the plan that has connected last.
  private static let state = Mutex((abandoned: 0, plan: 0, connected: Int?.none))

  /// - Returns: the number of the plan for the next attempt.
  static func begin() throws(BrokerError) -> Int {
    let (abandoned, plan, _) = state.withLock { $0 }
    guard abandoned < mostAbandoned else {
      throw .unreachable("\(mostAbandoned) earlier attempts to connect have not ended")
    }
    return plan
  }

  static func noteAbandoned() { state.withLock { $0.abandoned += 1 } }
  static func noteEndOfAbandoned() { state.withLock { $0.abandoned -= 1 } }

  /// The next attempt uses the same addresses, but does not take long.
  static func noteConnection(by plan: Int) {
    state.withLock { state in
      state.connected = plan
      if state.plan == plan, plans[plan].patience > 1 { state.plan = 0 }
    }
  }

  static func noteTimeOut(of plan: Int) { proceed(from: plan, to: (plan + 1) % plans.count) }

  /// The broker may have no address of a kind.
  static func noteFailure(of plan: Int) { proceed(from: plan, to: plans[plan].source == nil ? 0 : plan + 1) }

  /// A plan that has connected says nothing about the others by its first failure: then it is the broker that is away.
  /// Several connections can have used the same plan at the same time.
  private static func proceed(from plan: Int, to next: Int) {
    state.withLock { state in
      guard state.plan == plan else { return }
      state.plan = state.connected == plan ? 0 : next
      state.connected = nil
    }
  }
}
