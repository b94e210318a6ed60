// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ControlProtocol
import FrontPanel
import HTTP
import MobileAuth
import Synchronization
import Testing

@testable import TokenDaemon

/// What the LED of a token without accounts says after an enrollment that failed.
@Suite(.timeLimit(.minutes(5))) struct FailedEnrollmentTests {
  private static let uri = "approvaltoken://activate?server=https%3A%2F%2Ft.example&code=1234567890128"

  /// - Returns: false if the enrollment succeeds.
  private func fails(_ options: EnrollmentOptions, in fixture: ServiceFixture) async -> Bool {
    do { try await fixture.handler.answer(.enroll(options)) { _ in } } catch { return true }
    return false
  }

  @Test(
    "The cause is shown until another enrollment has another outcome",
    arguments: [
      (HTTPTransportError.noNetwork("no route"), 1), (.unreachable("refused"), 2), (.untrusted("it has expired"), 3),
    ])
  func cause(error: HTTPTransportError, cause: Int) async throws {
    let fixture = try ServiceFixture(http: RecordingHTTPTransport { _ throws(HTTPTransportError) in throw error })
    let running = [Task { await fixture.board.panel.run() }, Task { _ = try? await fixture.service.run() }]
    try await fixture.until(.mustEnroll)
    #expect(await fails(EnrollmentOptions(uri: Self.uri), in: fixture))
    try await fixture.until(.enrollmentFailed(cause: cause))
    fixture.service.reload()
    try await Task.sleep(for: .milliseconds(300))
    #expect(await fixture.board.panel.showing == .enrollmentFailed(cause: cause))
    #expect(await fails(EnrollmentOptions(uri: "https://example.org/"), in: fixture))
    try await fixture.until(.enrollmentFailed(cause: 4))
    try await fixture.enroll("mail")
    fixture.service.reload()
    try await fixture.until(.idle(pending: 0))
    // With an account, a failure is not shown, and a former one is forgotten.
    #expect(await fails(EnrollmentOptions(uri: "https://example.org/"), in: fixture))
    try fixture.vault.wipe(account: AccountID("mail"), AuditEntry(.wiped, wallClockMilliseconds: 0))
    fixture.service.reload()
    try await fixture.until(.mustEnroll)
    for task in running { task.cancel() }
    for task in running { try await task.finished() }
  }

  /// Attempts without a network, and one that reaches the network.
  @Test("Without a network the enrollment waits for one, and the LED shows that") func waitsForANetwork() async throws {
    let network = Mutex((isThere: false, attempts: [Bool]()))
    let fixture = try ServiceFixture(
      http: RecordingHTTPTransport { _ throws(HTTPTransportError) in
        let isThere = network.withLock { network in
          network.attempts.append(network.isThere)
          return network.isThere
        }
        throw isThere ? .unreachable("refused") : .noNetwork("no route")
      })
    let running = [Task { await fixture.board.panel.run() }, Task { _ = try? await fixture.service.run() }]
    try await fixture.until(.mustEnroll)
    var options = EnrollmentOptions(uri: Self.uri)
    options.networkWait = 600
    let enrollment = Task { [options] in try await fixture.handler.answer(.enroll(options)) { _ in } }
    try await fixture.until(.lookingForNetwork)
    network.withLock { $0.isThere = true }
    await #expect(throws: (any Error).self) { try await enrollment.finished() }
    let attempts = network.withLock { $0.attempts }
    #expect(attempts.first == false && attempts.last == true && attempts.count { $0 } == 1)
    try await fixture.until(.enrollmentFailed(cause: 2))
    for task in running { task.cancel() }
    for task in running { try await task.finished() }
  }

  @Test("The wait of an enrollment for a network can be ended, and has a limit") func theWaitEnds()
    async throws
  {
    let fixture = try ServiceFixture(
      http: RecordingHTTPTransport { _ throws(HTTPTransportError) in throw .noNetwork("no route") })
    let running = [Task { await fixture.board.panel.run() }, Task { _ = try? await fixture.service.run() }]
    var options = EnrollmentOptions(uri: Self.uri)
    options.networkWait = 600
    let endless = Task { [options] in try await fixture.handler.answer(.enroll(options)) { _ in } }
    try await fixture.until(.lookingForNetwork)
    endless.cancel()
    await #expect(throws: CancellationError.self) { try await endless.finished() }
    try await fixture.until(.mustEnroll)
    options.networkWait = 1
    #expect(await fails(options, in: fixture))
    try await fixture.until(.enrollmentFailed(cause: 1))
    for task in running { task.cancel() }
    for task in running { try await task.finished() }
  }
}
