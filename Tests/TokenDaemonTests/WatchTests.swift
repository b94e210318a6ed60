// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ControlProtocol
import FrontPanel
import MobileAuth
import Synchronization
import Testing

@testable import TokenDaemon

@Suite(.timeLimit(.minutes(5))) struct WatchTests {
  private static let request = FileServer.Contents.Request(
    id: "11111111-1111-4111-8111-111111111111", message: "Pay 5 EUR?")

  @Test("Only a pending request can be shown", arguments: ["x", "11111111-1111-4111-8111-111111111111"])
  func unknownRequest(name: String) async throws {
    let fixture = try ServiceFixture()
    await #expect {
      try await fixture.handler.answer(.show(transaction: name)) { _ in }
    } throws: {
      ($0 as? CommandError)?.code == .usage && "\($0)".contains("no pending request \"\(name)\"")
    }
  }

  @Test("A watcher, `pending` and `status` get the verified text while the request is on the panel")
  func verifiedTextIsShown() async throws {
    let fixture = try ServiceFixture(kinds: Backends.kinds + [FileBackend.self])
    let server = FileServer(path: fixture.serverFile)
    let changes = RecordedChanges()
    let running = [
      Task { await fixture.board.panel.run() }, Task { _ = try? await fixture.service.run() },
      Task {
        _ = try? await fixture.handler.answer(.watch) { changes.add($0) }
      },
    ]
    try await fixture.until("the first change") { !changes.all.isEmpty }
    _ = try await fixture.answer(
      .enroll(EnrollmentOptions(uri: "file-token:\(server.path)#ann")), as: EnrollmentResponse.self)
    try server.change { $0.pending["ann"]?.append(Self.request) }
    let pending = try await fixture.shownRequest()
    #expect(pending.verified?.message == "Pay 5 EUR?" && pending.verified?.signature == "hmac")
    let status = try await fixture.answer(.status, as: ServiceStatus.self)
    #expect(status.requests?.first?.verified == pending.verified)
    _ = try await fixture.answer(.simulate(.hold(milliseconds: 1000)), as: Done.self)
    try await fixture.until("the end of the request") { changes.all.last?.event == "ended" }
    for task in running { task.cancel() }
    for task in running { try await task.finished() }
    let lines = changes.all
    #expect(lines.map(\.event) == ["idle", "shown", "ended"])
    #expect(lines.map(\.transaction) == [nil, nil, Self.request.id])
    #expect(lines.compactMap(\.reason) == ["answered"])
    #expect(lines.compactMap(\.request?.verified) == [pending.verified].compactMap(\.self))
  }
}

private final class RecordedChanges: Sendable {
  private let list = Mutex<[PanelChange]>([])

  var all: [PanelChange] { list.withLock { $0 } }

  func add(_ reply: any Encodable & Sendable) {
    if let change = reply as? PanelChange { list.withLock { $0.append(change) } }
  }
}
