// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import Synchronization
import UnixSockets

/// A button that a page keeps down, by its connection to the token's control socket.
///
/// The page must say all the time that the button is still down. When it falls silent, the press ends as one that is no
/// gesture. With a release it says how long its user held the button: the token compares that with what it measured.
actor HeldButton {
  enum Ending: String, Sendable {
    case released, canceled
  }

  private struct Press {
    let number: Int
    let button: SimulatedButtonName
    var timing: PressTiming
    /// The token ends the press when this is closed.
    let connection: UnixSocket
  }

  private let socketPath: String
  private let ended: @Sendable (SimulatedButtonName, Ending, _ held: Duration) -> Void
  private var press: Press?
  private var presses = 0

  /// - Parameter ended: called at the end of each press.
  init(token: TokenProgram, ended: @escaping @Sendable (SimulatedButtonName, Ending, _ held: Duration) -> Void) {
    socketPath = ControlRequest.socket(in: token.state)
    self.ended = ended
  }

  /// Presses a button.
  /// - Returns: the number of the press, and why it is ignored if it is.
  func begin(_ button: SimulatedButtonName) async throws -> (number: Int, ignored: String?) {
    let path = socketPath
    // Two buttons that are down are no press; the token answers that.
    let (connection, done) = try await onThread {
      let connection = try UnixSocket.connected(to: path, within: 2)
      connection.setTimeout(seconds: 2)
      try connection.write(line: ControlRequest.pressButton(button).line)
      guard let line = try connection.readLine(within: 2) else { throw BenchError("the token does not answer") }
      switch try ControlResponse<Done>(line: line) {
      case .answer(let done): return (connection, done)
      case .failure(let error): throw error
      case .progress: throw BenchError("the token does not answer")
      }
    }
    presses += 1
    press = Press(number: presses, button: button, timing: PressTiming(now: .now), connection: connection)
    watch(presses)
    return (presses, done.ignored)
  }

  /// The page says that the button is down.
  /// - Returns: false if that press has ended.
  func beat(_ number: Int) -> Bool {
    guard press?.number == number, press?.timing.beat(.now) == true else {
      cancel(number)
      return false
    }
    return true
  }

  /// - Parameter milliseconds: how long the user held the button, by the page's clock.
  func release(_ number: Int, after milliseconds: Int) async throws -> Ending {
    guard let press, press.number == number else { return .canceled }
    guard press.timing.isGenuine(release: .milliseconds(milliseconds), now: .now) else {
      cancel(number)
      return .canceled
    }
    self.press = nil
    let (client, patience) = (ControlClient(path: socketPath), ControlClient.patience)
    let done = try await onThread {
      try client.call(.releaseButton(heldMilliseconds: Int64(milliseconds)), Done.self, within: patience)
    }
    return withExtendedLifetime(press.connection) {
      let ending: Ending = done.ignored == nil ? .released : .canceled
      ended(press.button, ending, .milliseconds(milliseconds))
      return ending
    }
  }

  /// Ends the press as one that is no gesture, by closing its connection.
  func cancel(_ number: Int) {
    guard let press, press.number == number else { return }
    self.press = nil
    ended(press.button, .canceled, press.timing.duration(now: .now))
  }

  private func watch(_ number: Int) {
    Task {
      while let timing = press?.number == number ? press?.timing : nil {
        guard let left = timing.timeLeft(now: .now) else { return cancel(number) }
        try? await Task.sleep(for: left)
      }
    }
  }
}

/// The times of one press of a page.
struct PressTiming: Sendable {
  typealias Instant = ContinuousClock.Instant

  /// Less than the shortest hold that approves.
  static let silence = Duration.milliseconds(500)
  /// The longest press.
  static let longest = Duration.seconds(30)

  private let began: Instant
  private var lastBeat: Instant

  init(now: Instant) { (began, lastBeat) = (now, now) }

  func duration(now: Instant) -> Duration { now - began }

  /// - Returns: false if the press must be canceled: the page was silent for too long.
  mutating func beat(_ now: Instant) -> Bool {
    guard timeLeft(now: now) != nil else { return false }
    lastBeat = max(lastBeat, now)
    return true
  }

  /// The time until the press is canceled if the page says nothing; nil if it must be canceled now.
  func timeLeft(now: Instant) -> Duration? {
    let left = min(lastBeat + Self.silence, began + Self.longest) - now
    return left > .zero ? left : nil
  }

  /// Whether the press is at most 200 ms longer than the user's. A release that is late here need not be sent: the
  /// token compares the two times, too.
  func isGenuine(release duration: Duration, now: Instant) -> Bool {
    timeLeft(now: now) != nil && now - began <= duration + .milliseconds(200)
  }
}
