// SPDX-License-Identifier: Apache-2.0
import Synchronization
import Testing

@testable import BenchPage

/// The result with which the bench ends.
final class Outcome: Sendable {
  private let result = Mutex<Result<Void, any Error>?>(nil)

  var isKnown: Bool { result.withLock { $0 != nil } }

  /// What the error says; nil if there is none.
  var error: String? {
    result.withLock { result in
      guard case .failure(let error)? = result else { return nil }
      return "\(error)"
    }
  }

  func set(_ result: Result<Void, any Error>) { self.result.withLock { $0 = result } }

  func wait() async throws {
    try await BenchPage.wait(.seconds(60), for: "the end") { self.isKnown }
  }
}

@Suite(.timeLimit(.minutes(5))) struct EndTests {
  private func bench(state: String? = nil) -> Bench {
    Bench(Bench.Plan(programs: "/none", folder: "/none", users: ["alice"], state: state))
  }

  @Test("An end that takes too long is no error if the user began it") func told() async throws {
    let outcome = Outcome()
    BenchEnd(bench(), limit: .zero) { outcome.set($0) }.begin()
    try await outcome.wait()
    #expect(outcome.error == nil)
  }

  @Test("Otherwise it has the first error") func firstError() async throws {
    let outcome = Outcome()
    let ending = BenchEnd(bench(), limit: .milliseconds(500)) { outcome.set($0) }
    for text in ["first", "second"] { ending.begin(BenchError(text)) }
    try await outcome.wait()
    #expect(outcome.error == "first")
  }

  @Test("A token that cannot be used begins the end with its error") func unusableToken() async throws {
    let outcome = Outcome()
    let starter = Starter(
      bench: bench(state: "/tmp/no-such-token"), access: Access(port: 1),
      ending: BenchEnd(bench(), limit: .zero) { outcome.set($0) })
    let error = await #expect(throws: BenchError.self) { try await starter.run() }
    try await outcome.wait()
    #expect(error?.description.contains("/tmp/no-such-token") == true && outcome.error == error?.description)
  }

  @Test("What does not end is left behind") func leftBehind() async {
    let (endless, end) = AsyncStream.makeStream(of: Never.self)
    await wait(atMost: .milliseconds(10)) { for await _ in endless {} }
    await wait(atMost: .seconds(3600)) {}
    end.finish()
  }
}
