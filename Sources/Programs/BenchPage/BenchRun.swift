// SPDX-License-Identifier: Apache-2.0
import Glibc
import Hummingbird
import Logging
import NIOCore
import ServiceLifecycle
import Synchronization
import UnixSignals

/// The page and the programs, until a signal or an error ends them.
struct BenchRun<Page: ApplicationProtocol>: Sendable {
  let bench: Bench
  let access: Access
  let application: Page

  /// Returns some seconds after the end begins, whatever browsers and programs do. A program of the bench that runs
  /// then, because its end takes too long, ends with this process.
  /// - Throws: the error that began the end.
  func run() async throws {
    let (results, result) = AsyncStream.makeStream(of: Result<Void, any Error>.self)
    let ending = BenchEnd(bench) { result.yield($0) }
    let service = ServiceGroup(configuration: configuration(ending))
    // In a task of its own: what does not end is left behind.
    Task {
      do {
        try await service.run()
        result.yield(.success(()))
      } catch { result.yield(.failure(error)) }
    }
    let first = await results.first { _ in true }
    // Also what was started while the end began.
    await wait(atMost: .seconds(6)) { [bench] in await bench.end() }
    do { try first?.get() } catch is CancellationError {
      // Connections were closed in the middle of a request.
    }
  }

  private func configuration(_ ending: BenchEnd) -> ServiceGroupConfiguration {
    var configuration = ServiceGroupConfiguration(
      services: [
        .init(
          service: Streams(application: application, access: access, ending: ending),
          failureTerminationBehavior: .gracefullyShutdownGroup),
        .init(
          service: Starter(bench: bench, access: access, ending: ending),
          successTerminationBehavior: .gracefullyShutdownGroup, failureTerminationBehavior: .gracefullyShutdownGroup),
      ], gracefulShutdownSignals: [.sigterm, .sigint, .sighup],
      logger: Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() })
    configuration.maximumGracefulShutdownDuration = .seconds(3)
    return configuration
  }
}

/// The end of the bench, which begins once: it ends the programs and the streams of the pages, for which requests wait.
final class BenchEnd: Sendable {
  private struct State {
    var hasBegun = false
    var error: (any Error)?
  }

  private let bench: Bench
  private let limit: Duration
  private let gaveUp: @Sendable (Result<Void, any Error>) -> Void
  private let state = Mutex(State())

  /// - Parameters:
  ///   - limit: more than an orderly end takes, with programs that must be killed.
  ///   - gaveUp: called when the end has taken too long, with the first error that was given to `begin`.
  init(
    _ bench: Bench, limit: Duration = .seconds(7), gaveUp: @escaping @Sendable (Result<Void, any Error>) -> Void
  ) {
    (self.bench, self.limit) = (bench, limit)
    self.gaveUp = gaveUp
  }

  /// - Parameter error: why the bench ends; nil if it was asked to.
  func begin(_ error: (any Error)? = nil) {
    let isFirst = state.withLock { state in
      defer { state.hasBegun = true }
      state.error = state.error ?? error
      return !state.hasBegun
    }
    guard isFirst else { return }
    Task { await bench.end() }
    Task {
      try? await Task.sleep(for: limit)
      let error = state.withLock { $0.error }
      if let error { gaveUp(.failure(error)) } else { gaveUp(.success(())) }
    }
  }
}

/// Waits for the end of `body`, which is left behind after `limit`, whatever it does.
func wait(atMost limit: Duration, _ body: @escaping @Sendable () async -> Void) async {
  let (ends, end) = AsyncStream.makeStream(of: Never.self)
  Task {
    await body()
    end.finish()
  }
  let timer = Task {
    try await Task.sleep(for: limit)
    end.finish()
  }
  for await _ in ends {}
  timer.cancel()
}

/// Serves the page. Its shutdown waits for open responses, so the pages' streams must end first.
struct Streams<Page: ApplicationProtocol>: Service {
  let application: Page
  let access: Access
  let ending: BenchEnd

  /// - Throws: `BenchError` if the port cannot be used.
  func run() async throws {
    do {
      try await withTaskCancellationOrGracefulShutdownHandler {
        try await application.run()
      } onCancelOrGracefulShutdown: {
        ending.begin()
      }
    } catch {
      // What fails because the end has begun is no failure.
      guard !Task.isShuttingDownGracefully else { return }
      let failure = explained(error)
      ending.begin(failure)
      throw failure
    }
  }

  private func explained(_ error: any Error) -> any Error {
    guard let failure = error as? IOError else { return error }
    let why = String(cString: strerror(failure.errnoCode))
    return BenchError("cannot listen on port \(access.port) of 127.0.0.1: \(why); choose another with --port")
  }
}

/// Checks the programs that run already, starts the others, and then lets browsers in.
struct Starter: Service {
  let bench: Bench
  let access: Access
  let ending: BenchEnd

  func run() async throws {
    do {
      try await withTaskCancellationOrGracefulShutdownHandler {
        try await cancelWhenGracefulShutdown {
          try await bench.check()
          try await bench.start(callback: "http://\(access.host)/callback/\(access.callbackToken)")
          print("the bench is at \(access.address)")
          fflush(nil)
          // Until it is canceled.
          for await _ in AsyncStream<Never>.makeStream().stream {}
        }
      } onCancelOrGracefulShutdown: {
        ending.begin()
      }
    } catch {
      // What fails because the end has begun is no failure.
      guard !Task.isShuttingDownGracefully else { return }
      ending.begin(error)
      throw error
    }
  }
}
