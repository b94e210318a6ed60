// SPDX-License-Identifier: Apache-2.0
import Testing

/// Prints how long each test without arguments took, for `scripts/test-report`. The runner's event stream has the start
/// of each case of a test with arguments, but none for a test without: that begins to wait for a free worker when it is
/// "started".
struct Timed: SuiteTrait, TestTrait, TestScoping {
  var isRecursive: Bool { true }

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    let began = ContinuousClock.now
    defer { if !test.isParameterized { print("took \((.now - began) / .seconds(1)) s: \(test.name)") } }
    try await function()
  }
}

extension Trait where Self == Timed {
  static var timed: Self { Timed() }
}
