// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit

/// A user's gesture at the panel, in real time.
package enum UserGesture: String, Sendable {
  case hold, double
  case notMe = "not-me"
  case cancelKeys

  /// The request that the command `simulate hold 1`, `double`, `not-me` or `keys escape escape` sends.
  fileprivate var request: ControlCall.Request {
    switch self {
    case .hold: .init(request: "hold", milliseconds: 1000)
    case .double: .init(request: "double")
    case .notMe: .init(request: "hold", milliseconds: 6200)
    case .cancelKeys: .init(request: "keys", keys: ["escape", "escape"])
    }
  }
}

extension TestToken {
  /// Waits until a press is accepted for the request, and acts; acts again if there is no reaction.
  /// - Parameter mark: a position in the log; only later lines count.
  package func answer(_ transaction: String, with gesture: UserGesture, from mark: Int = 0) async throws {
    try await answer(transaction, from: mark) { try await perform(gesture) }
  }

  /// Waits until a press is accepted for the request, and calls `act`; calls `act` again if there is no reaction, but
  /// not while an earlier gesture may still be on its way.
  package func answer(
    _ transaction: String, from mark: Int = 0, by act: () async throws -> Void
  ) async throws {
    let log = try log
    try await log.line(with: "opened request \(transaction)", from: mark)
    let (decided, start) = ("decided request \(transaction)", log.mark)
    for _ in 1...3 {
      let counts = try await eventually("a press counts for \(transaction)") { () -> Bool? in
        if log.lines.dropFirst(start).contains(where: { $0.contains(decided) }) { return false }
        return try await pendingRequests().contains { $0.transaction == transaction && $0.pressCounts } ? true : nil
      }
      guard counts else { return }
      try await act()
      if (try? await log.line(with: decided, from: start, within: .seconds(10))) != nil { return }
    }
    throw OutputTimeoutError(description: "a reaction to a gesture for \(transaction)")
  }

  private struct Done: Decodable {
    let done: Bool
    /// Why it had no effect.
    let ignored: String?
  }

  /// Presents it to its simulated reader, without a process. Fails if the reader is not asked.
  package func present(_ presented: Presented) async throws { try await act(presented.request) }

  /// Waits until the simulated reader or authenticator is asked, and presents it then.
  package func presentWhenAsked(_ presented: Presented) async throws {
    _ = try await eventually("it is asked for \(presented)") {
      try await call(presented.request).answer(Done.self).ignored == nil ? true : nil
    }
  }

  /// Sends the request of a gesture, and returns at the end of the gesture.
  /// - Throws: an error that says whether the service still runs, with the end of its log.
  func act(_ request: ControlCall.Request) async throws {
    do { _ = try await call(request).answer(Done.self) } catch {
      let service = try running
      let tail = service.errors.lines.suffix(6).map { "\n    \($0)" }.joined()
      let state = service.isRunning ? "runs" : "has ended"
      throw OutputTimeoutError(description: "\(error)\nThe service \(state). The end of its log:\(tail)")
    }
  }

  package func perform(_ gesture: UserGesture) async throws { try await self.act(gesture.request) }

  package func hold(seconds: Double) async throws {
    try await act(.init(request: "hold", milliseconds: Int64(seconds * 1000)))
  }
}

/// What a user presents to a simulated reader or authenticator.
package struct Presented: Sendable {
  fileprivate let request: ControlCall.Request

  /// - Parameter retry: why a simulated reader could not read what was presented.
  package init(
    finger: String? = nil, badge: String? = nil, touch: Bool? = nil, data: String? = nil, retry: String? = nil
  ) {
    request = .init(
      request: "simulate-authenticator", finger: finger, badge: badge, touch: touch, data: data, retry: retry)
  }
}
