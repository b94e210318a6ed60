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

  /// Returns some seconds after the end begins, whatever browsers and programs do. No program of the bench runs then.
  func run() async throws {
    let (results, result) = AsyncStream.makeStream(of: Result<Void, any Error>.self)
    let ending = BenchEnd(bench) { result.yield(.success(())) }
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
    await bench.end()
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
  /// More than an orderly end takes, with programs that must be killed.
  private static let limit = Duration.seconds(7)

  private let bench: Bench
  private let gaveUp: @Sendable () -> Void
  private let hasBegun = Mutex(false)

  /// - Parameter gaveUp: called when the end has taken too long.
  init(_ bench: Bench, gaveUp: @escaping @Sendable () -> Void) {
    self.bench = bench
    self.gaveUp = gaveUp
  }

  func begin() {
    let isFirst = hasBegun.withLock { hasBegun in
      defer { hasBegun = true }
      return !hasBegun
    }
    guard isFirst else { return }
    Task { await bench.end() }
    Task {
      try? await Task.sleep(for: Self.limit)
      gaveUp()
    }
  }
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
      guard let failure = error as? IOError else { throw error }
      let why = String(cString: strerror(failure.errnoCode))
      throw BenchError("cannot listen on port \(access.port) of 127.0.0.1: \(why); choose another with --port")
    }
  }
}

/// Checks the programs that run already, starts the others, and then lets browsers in.
private struct Starter: Service {
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
      guard Task.isShuttingDownGracefully else { throw error }
    }
  }
}
