import Synchronization

/// What somebody began at the command line and has to finish at the panel: choose a PIN, log in. The handler does them
/// between requests, one at a time, so that panel and person are never asked two things at once.
public final class Errands: Sendable {
  struct Errand: Sendable {
    fileprivate let number: Int
    fileprivate let server: TokenServerID?
    fileprivate let begin: @Sendable (any Panel) -> Task<Void, Never>
    fileprivate let abandon: @Sendable () -> Void

    fileprivate func isDue(except busy: Set<TokenServerID>) -> Bool { server.map { !busy.contains($0) } ?? true }
  }

  private struct State {
    var waiting: [Errand] = []
    var lastNumber = 0
    var running: (number: Int, task: Task<Void, Never>)?
  }

  private let state = Mutex(State())
  private let inbox: Inbox

  /// - Parameter inbox: the one the handler waits for.
  public init(inbox: Inbox) { self.inbox = inbox }

  /// Waits for the panel and does `body` with it.
  /// - Parameter server: the one that it is about, if any: it waits for answers on their way there, and for no others.
  /// - Throws: what `body` throws; `CancellationError` if the caller or the service ends first.
  public func perform<Result: Sendable>(
    at server: TokenServerID? = nil, _ body: @escaping @Sendable (any Panel) async throws -> Result
  ) async throws -> Result {
    let number = state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let errand = Errand(number: number, server: server) { panel in
          Task {
            do { continuation.resume(returning: try await body(panel)) } catch { continuation.resume(throwing: error) }
          }
        } abandon: {
          continuation.resume(throwing: CancellationError())
        }
        state.withLock { $0.waiting.append(errand) }
        if Task.isCancelled { abandon(number) }
        inbox.nudge()
      }
    } onCancel: {
      abandon(number)
    }
  }

  /// - Parameter busy: servers whose errands have to wait.
  func isWaiting(except busy: Set<TokenServerID>) -> Bool {
    state.withLock { $0.waiting.contains { $0.isDue(except: busy) } }
  }

  /// Does the one that has waited longest, to its end or until whoever wanted it, or the handler, gives up.
  /// - Parameter busy: servers whose errands have to wait.
  /// - Returns: whether there was one.
  func runNext(on panel: any Panel, except busy: Set<TokenServerID>) async -> Bool {
    let task = state.withLock { state -> Task<Void, Never>? in
      guard let next = state.waiting.firstIndex(where: { $0.isDue(except: busy) }) else { return nil }
      let errand = state.waiting.remove(at: next)
      let task = errand.begin(panel)
      state.running = (errand.number, task)
      return task
    }
    guard let task else { return false }
    await withTaskCancellationHandler {
      await task.value
    } onCancel: {
      task.cancel()
    }
    state.withLock { $0.running = nil }
    return true
  }

  private func abandon(_ number: Int) {
    let errand: Errand? = state.withLock { state in
      if let running = state.running, running.number == number { running.task.cancel() }
      return state.waiting.firstIndex { $0.number == number }.map { state.waiting.remove(at: $0) }
    }
    errand?.abandon()
  }
}
