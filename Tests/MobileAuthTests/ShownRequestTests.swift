// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

/// The verified request on the panel, as commands and displays see it.
@Suite(.timeLimit(.minutes(5))) struct ShownRequestTests {
  private let fixture = HandlerFixture()
  private static let texts = VerifiedTexts(
    signedWith: .openPGP, type: "payment", message: "Pay 12 EUR to Bob", pushMessage: "Pay?", digest: "abcd")

  /// Fails if the verified text is thrown away when the request is shown.
  @Test("The verified texts are known while the request is on the panel") func textsAreKept() async throws {
    fixture.server.set(texts: Self.texts)
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      #expect(fixture.inbox.panel.shown.request?.contents.texts == Self.texts)
      fixture.panel.perform(accept)
      await fixture.panel.until(showing: .idle(pending: 0))
      #expect(fixture.inbox.panel.shown.request == nil)
    }
  }

  /// Events of one watcher, without the contents.
  private func events(_ count: Int, _ changes: AsyncStream<ShownRequest.Change>) async -> [String] {
    var events: [String] = []
    for await change in changes.prefix(count) {
      switch change {
      case .nothing: events.append("nothing")
      case .shown(let request): events.append("shown \(request.pending.transaction.text.suffix(1))")
      case .ended(let transaction, let reason): events.append("\(reason.rawValue) \(transaction.text.suffix(1))")
      }
    }
    return events
  }

  @Test("A watcher gets what is shown now and each change, with the reason") func changesAreStreamed() async throws {
    let first = fixture.inbox.panel.shown.changes()
    try await fixture.withHandler {
      let old = fixture.request(1)
      fixture.announce(old)
      await fixture.panel.until(challenges: 1)
      let late = fixture.inbox.panel.shown.changes()
      fixture.announce(fixture.request(2), old)
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(deny)
      await fixture.panel.until(challenges: 3)
      fixture.announce()
      await fixture.panel.until(showing: .idle(pending: 0))
      let changes = ["shown 1", "replaced 1", "shown 2", "answered 2", "shown 1", "closed 1"]
      #expect(await events(6, late) == changes)
      #expect(await events(7, first) == ["nothing"] + changes)
    }
  }

  @Test("A request ends as expired, and as interrupted when the service reloads") func otherEndings() async throws {
    let changes = fixture.inbox.panel.shown.changes()
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(20)))
      await fixture.panel.until(challenges: 1)
      fixture.clock.advance(by: .seconds(20))
      await fixture.panel.until(showing: .idle(pending: 0))
      fixture.announce(fixture.request(2))
      await fixture.panel.until(challenges: 2)
    }
    #expect(await events(5, changes) == ["nothing", "shown 1", "expired 1", "shown 2", "interrupted 2"])
  }

  @Test(
    "The audit chain has the digest of the text, and the text only if the operator wants it",
    arguments: [
      (false, "login, message SHA-256 abcd"), (true, "login, message SHA-256 abcd, says \"Pay 12 EUR to Bob\""),
    ])
  func auditDetail(recordsTexts: Bool, detail: String) async throws {
    fixture.server.set(texts: Self.texts)
    let handler = Handler(
      servers: [fixture.server], inbox: fixture.inbox, panelTasks: fixture.panelTasks, panel: fixture.panel,
      stateStore: fixture.stateStore, mustEnroll: false, recordsTexts: recordsTexts, in: fixture.environment)
    let running = Task { try await handler.run() }
    fixture.announce(fixture.request(1))
    await fixture.panel.until(challenges: 1)
    running.cancel()
    _ = try? await running.finished()
    #expect(fixture.stateStore.audit.filter { $0.kind == .opened }.map(\.detail) == [detail])
  }
}
