// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Panel tasks: interactive dialogs started by a command, such as choosing a PIN or logging in. The handler runs them
/// between requests, one at a time, so that the panel never asks two questions at once.
package final class PanelTaskQueue: Sendable {
  struct PanelTask: Sendable {
    fileprivate let number: Int
    fileprivate let server: TokenServerID?
    fileprivate let begin: @Sendable (any Panel) -> Task<Void, Never>
    fileprivate let abandon: @Sendable () -> Void

    fileprivate func isDue(except busy: Set<TokenServerID>) -> Bool { server.map { !busy.contains($0) } ?? true }
  }

  /// More than any user takes: each prompt has two minutes, each request to a server has a time limit.
  static let longestTask = Duration.seconds(3600)

  private struct State {
    var waiting: [PanelTask] = []
    var lastNumber = 0
    var running: (number: Int, task: Task<Void, Never>)?
    var isSuspended = false
    var onIdle: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())
  private let changes: ChangeSignal

  /// - Parameter changes: the signal that wakes the handler.
  package init(changes: ChangeSignal) { self.changes = changes }

  /// Waits until the panel is free and runs `body` with it.
  /// - Parameter server: the server concerned, if any. The task waits for answers being sent to this server, not for
  ///   those to others.
  /// - Throws: what `body` throws; `CancellationError` if the caller or the service ends first.
  package func perform<Result: Sendable>(
    at server: TokenServerID? = nil, _ body: @escaping @Sendable (any Panel) async throws -> Result
  ) async throws -> Result {
    let number = state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let task = PanelTask(number: number, server: server) { panel in
          Task {
            do { continuation.resume(returning: try await body(panel)) } catch { continuation.resume(throwing: error) }
          }
        } abandon: {
          continuation.resume(throwing: CancellationError())
        }
        state.withLock { $0.waiting.append(task) }
        if Task.isCancelled { abandon(number) }
        changes.raise()
      }
    } onCancel: {
      abandon(number)
    }
  }

  /// Lets the running task end, and begins no other until `resume`. For a change of handlers, which would cancel it.
  package func suspend() async {
    await withCheckedContinuation { continuation in
      let isIdle = state.withLock { state in
        state.isSuspended = true
        if state.running != nil { state.onIdle.append(continuation) }
        return state.running == nil
      }
      if isIdle { continuation.resume() }
    }
  }

  /// Tasks begin again.
  package func resume() {
    state.withLock { $0.isSuspended = false }
    changes.raise()
  }

  /// Whether a task can run now.
  /// - Parameter busy: servers whose tasks have to wait.
  func isWaiting(except busy: Set<TokenServerID>) -> Bool {
    state.withLock { state in !state.isSuspended && state.waiting.contains { $0.isDue(except: busy) } }
  }

  /// Runs the task that has waited longest, until it ends or the caller or the handler cancels it.
  /// - Parameter busy: servers whose tasks have to wait.
  /// - Returns: whether there was a task.
  func runNext(on panel: any Panel, except busy: Set<TokenServerID>) async -> Bool {
    let task = state.withLock { state -> Task<Void, Never>? in
      guard !state.isSuspended, let next = state.waiting.firstIndex(where: { $0.isDue(except: busy) }) else {
        return nil
      }
      let panelTask = state.waiting.remove(at: next)
      let task = panelTask.begin(panel)
      state.running = (panelTask.number, task)
      return task
    }
    guard let task else { return false }
    await withTaskCancellationHandler {
      await task.value
    } onCancel: {
      task.cancel()
    }
    let waiting = state.withLock { state in
      state.running = nil
      defer { state.onIdle = [] }
      return state.onIdle
    }
    for continuation in waiting { continuation.resume() }
    return true
  }

  private func abandon(_ number: Int) {
    let (running, waiting) = state.withLock { state in
      (
        state.running.flatMap { $0.number == number ? $0.task : nil },
        state.waiting.firstIndex { $0.number == number }.map { state.waiting.remove(at: $0) }
      )
    }
    // Not while the lock is held: cancellation calls handlers, which may take it.
    running?.cancel()
    waiting?.abandon()
  }
}
