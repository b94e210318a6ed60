// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Testing

/// Runs the tests of a suite with one site, `Site.current`, which begins before the first one and ends after the last.
struct WithSite: SuiteTrait, TestScoping {
  let make: @Sendable (_ body: @Sendable (Site) async throws -> Void) async throws -> Void

  func provideScope(
    for test: Test, testCase: Test.Case?, performing body: @Sendable () async throws -> Void
  ) async throws {
    try await make { site in try await Site.$ofSuite.withValue(site, operation: body) }
  }
}

extension Trait where Self == WithSite {
  static func withSite(isSplit: Bool) -> WithSite {
    WithSite { body in
      let site = Task { try await Site(isSplit: isSplit) }
      try await body(site.finished("the start of the site", within: .seconds(300)))
    }
  }
}
