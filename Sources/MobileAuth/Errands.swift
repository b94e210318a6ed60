import Synchronization

/// What somebody began at the command line and has to finish at the panel: choose a PIN, log in. The handler does them
/// between requests, one at a time, so that panel and person are never asked two things at once.
public final class Errands: Sendable {
  struct Errand: Sendable {
    fileprivate let number: Int
    let run: @Sendable (any Panel) async -> Void
    fileprivate let abandon: @Sendable () -> Void
  }

  private let waiting = Mutex((errands: [Errand](), lastNumber: 0))
  private let inbox: Inbox

  /// - Parameter inbox: the one the handler waits for.
  public init(inbox: Inbox) { self.inbox = inbox }

  /// Waits for the panel and does `body` with it.
  /// - Throws: what `body` throws; `CancellationError` if the caller or the service ends first.
  public func perform<Result: Sendable>(
    _ body: @escaping @Sendable (any Panel) async throws -> Result
  ) async throws -> Result {
    let number = waiting.withLock { waiting in
      waiting.lastNumber += 1
      return waiting.lastNumber
    }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let errand = Errand(number: number) { panel in
          do { continuation.resume(returning: try await body(panel)) } catch { continuation.resume(throwing: error) }
        } abandon: {
          continuation.resume(throwing: CancellationError())
        }
        waiting.withLock { $0.errands.append(errand) }
        if Task.isCancelled { abandon(number) }
        inbox.nudge()
      }
    } onCancel: {
      abandon(number)
    }
  }

  var isWaiting: Bool { waiting.withLock { !$0.errands.isEmpty } }

  /// Whoever takes it runs it.
  func next() -> Errand? {
    waiting.withLock { $0.errands.isEmpty ? nil : $0.errands.removeFirst() }
  }

  /// Only one that nobody has begun: who runs it hears of the end by itself.
  private func abandon(_ number: Int) {
    let errand: Errand? = waiting.withLock { waiting in
      waiting.errands.firstIndex { $0.number == number }.map { waiting.errands.remove(at: $0) }
    }
    errand?.abandon()
  }
}
