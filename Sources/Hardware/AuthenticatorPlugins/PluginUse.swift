// SPDX-License-Identifier: Apache-2.0
import Glibc
import MobileAuth
import Synchronization

/// How long the end of a plug-in is waited for.
struct PluginPatience {
  /// After its answer, which counts only if nothing follows it: a busy board needs time to end an interpreter.
  var afterAnswer = Duration.seconds(5)
  /// After the end of its input, for a program that was started for the use; it is then killed.
  var beforeKill = Duration.milliseconds(500)
}

/// One use of a plug-in: one line to it, then lines from it up to its answer. Every step is bounded; at the end the
/// connection is closed, and a program that was started for it is killed with everything in its process group.
final class PluginUse: Sendable {
  /// The maximum number of lines before the answer.
  static let mostHints = 32

  private struct UseError: Error {
    let why: String
  }

  private struct State {
    var link: PluginLink?
    var isCanceled = false
  }

  private let configuration: PluginConfiguration
  private let patience: PluginPatience
  private let state = Mutex(State())

  init(_ configuration: PluginConfiguration, patience: PluginPatience) {
    self.configuration = configuration
    self.patience = patience
  }

  /// Ends `run` from any thread.
  func cancel() {
    state.withLock { state in
      state.isCanceled = true
      state.link?.interrupt()
    }
  }

  /// Blocks the calling thread until the answer, the time limit or `cancel`.
  func run(_ call: DriverCall, _ report: (DriverEvent) -> Void) {
    let deadline = ContinuousClock.now + configuration.timeLimit
    let link: PluginLink
    do { link = try PluginLink(to: configuration.program) } catch { return report(.failed(error.why)) }
    let isCanceled = state.withLock { state in
      state.link = link
      return state.isCanceled
    }
    defer {
      state.withLock { $0.link = nil }
      link.end(within: patience.beforeKill)
    }
    guard !isCanceled else { return }
    let answer: DriverEvent
    do { answer = try converse(call, over: link, until: deadline, report) } catch { answer = .failed(error.why) }
    if state.withLock({ !$0.isCanceled }) { report(answer) }
  }

  private func converse(
    _ call: DriverCall, over link: PluginLink, until deadline: ContinuousClock.Instant, _ report: (DriverEvent) -> Void
  ) throws(UseError) -> DriverEvent {
    link.send(PluginQuestion(call).line)
    var buffer = PluginLineBuffer()
    var hints = 0
    while true {
      guard let line = try next(&buffer, link, until: deadline, limit: configuration.timeLimit) else {
        throw UseError(why: "it ended without an answer")
      }
      let event: DriverEvent
      do { event = try PluginLine.parse(line) } catch {
        throw UseError(why: "not a line of the protocol: \(error.why)")
      }
      if event.isAnswer {
        let end = min(deadline, ContinuousClock.now + patience.afterAnswer)
        guard buffer.isEmpty, case .end = link.read(until: end) else {
          throw UseError(why: "it does not end after its answer")
        }
        return event
      }
      hints += 1
      guard hints <= Self.mostHints else { throw UseError(why: "more than \(Self.mostHints) lines without an answer") }
      report(event)
    }
  }

  /// - Returns: the next line; nil at the end.
  private func next(
    _ buffer: inout PluginLineBuffer, _ link: PluginLink, until deadline: ContinuousClock.Instant, limit: Duration
  ) throws(UseError) -> [UInt8]? {
    while true {
      if let line = buffer.next() { return line }
      guard !buffer.isTooLong else { throw UseError(why: "a line is longer than \(PluginLine.longest) bytes") }
      switch link.read(until: deadline) {
      case .bytes(let bytes): buffer.append(bytes)
      case .end: return nil
      case .timeIsOver: throw UseError(why: "no answer within \(limit.milliseconds) ms")
      case .failed(let why): throw UseError(why: why)
      }
    }
  }
}

/// Splits what a plug-in says into lines. Holds one line and one read at most.
struct PluginLineBuffer {
  private var bytes: [UInt8] = []
  private var searched = 0

  var isEmpty: Bool { bytes.isEmpty }
  /// Whether the beginning of a line is longer than a line may be.
  var isTooLong: Bool { bytes.count > PluginLine.longest }

  mutating func append(_ more: [UInt8]) { bytes += more }

  mutating func next() -> [UInt8]? {
    guard let end = bytes[searched...].firstIndex(of: UInt8(ascii: "\n")) else {
      searched = bytes.count
      return nil
    }
    defer {
      bytes.removeSubrange(...end)
      searched = 0
    }
    return Array(bytes[..<end])
  }
}
