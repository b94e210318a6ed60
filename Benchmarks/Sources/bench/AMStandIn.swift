// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestAM

/// The tests' simulated AM behind TLS. It verifies the token's answers; its journey shows whether the login succeeded.
struct AMStandIn {
  static let path = "/am/json/alpha/push/sns/message"
  static let fields = [
    ("Accept-API-Version", "resource=1.0, protocol=1.0"), ("Cookie", "amlbcookie=01"),
  ]

  let wire: TLSStandIn
  let am: TestAM

  init(on stage: Stage) throws {
    wire = try TLSStandIn(on: stage)
    let am = TestAM(base: wire.origin + "/am", realm: "alpha") { Int64(Date().timeIntervalSince1970 * 1000) }
    self.am = am
    wire.serve { request in
      let headers = ["accept-api-version", "content-type"].map { ($0, request.head[$0] ?? "") }
      let answer = am.respond(
        method: request.method, target: request.target, headers: Dictionary(uniqueKeysWithValues: headers),
        body: request.body)
      return .init(status: answer.status, content: answer.body)
    }
  }

  /// Registers a user's mechanism at `token`.
  func register(_ user: String, at token: PushToken) throws {
    try token.enroll(am.registrationURI(user))
    guard am.finishRegistration(of: user) != nil else { throw BenchError("AM has not heard of \(user)'s token") }
  }

  /// A push message from the sender node to a user.
  func push(to user: String) throws -> TestAM.Push {
    guard let push = am.send(user) else { throw BenchError("AM knows no token of \(user)") }
    return push
  }

  /// The login page.
  func requireLogin(_ push: TestAM.Push) throws {
    let outcome = am.verify(push)
    guard outcome == .isTrue else { throw BenchError("AM finds the login \(outcome.rawValue)") }
  }
}
