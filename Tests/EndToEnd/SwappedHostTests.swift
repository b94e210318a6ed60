// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import ProgramHarness
import RelayProtocol
import Synchronization
import Testing

extension EndToEnd {
  /// A network process that was taken over, and carries what is for one server to another one, whose certificate it
  /// accepts although it has other pins.
  @Suite struct SwappedHosts {
    @Test("What is carried to another server is approved nowhere, and nothing is lost by it") func approvedNowhere()
      async throws
    {
      try await withTwoServers { fixtures, swap in
        for fixture in fixtures { try await fixture.approve() }
        let token = fixtures[0].token

        // From the start of a device process on: lists, streams and sessions.
        swap.isOn = true
        try await token.kill9()
        try await token.startDevice(at: swap.path)
        var unseen: [(EndToEndFixture, String)] = []
        for _ in 1...3 {
          for fixture in fixtures { unseen.append((fixture, try await fixture.ask())) }
          try await token.perform(.hold)
          try await Task.sleep(for: .seconds(1))
        }
        _ = try await eventually("orders for both servers") { Set(swap.hosts).count == 2 ? () : nil }
        for (fixture, transaction) in unseen {
          #expect(try await fixture.portal.result(of: transaction).isAuthenticated == false)
          #expect(try await token.audit(of: transaction).allSatisfy { $0.kind != "decided" })
          try await fixture.portal.cancel(transaction)
        }
        try await Self.recover(fixtures, swap)

        // The answer alone.
        for fixture in fixtures {
          let transaction = try await fixture.ask()
          _ = try await eventually("the request on the panel") {
            try await token.pendingRequests().contains { $0.transaction == transaction && $0.pressCounts } ? () : nil
          }
          let carried = swap.hosts.count
          swap.isOn = true
          try await token.answer(transaction, with: .hold)
          _ = try await eventually("an order for another server") { swap.hosts.count > carried ? () : nil }
          try await Task.sleep(for: .seconds(1))
          #expect(try await fixture.portal.result(of: transaction).isAuthenticated == false)
          try await Self.recover(fixtures, swap)
          // It was held for, so it may be approved now; otherwise the user is asked again.
          if try await !fixture.portal.result(of: transaction).isAuthenticated {
            try await token.answer(transaction, with: .hold)
            #expect(try await fixture.portal.finalResult(of: transaction).isAuthenticated)
          }
        }
        for fixture in fixtures { try await fixture.approve() }
      }
    }

    /// Both accounts are active, and no answer waits.
    private static func recover(_ fixtures: [EndToEndFixture], _ swap: HostSwap) async throws {
      let token = fixtures[0].token
      swap.isOn = false
      try await token.kill9()
      try await token.startDevice(at: swap.path)
      _ = try await eventually("connections to both servers") {
        try token.log.lines.count { $0.contains("] connected to") } >= 2 ? () : nil
      }
      _ = try await eventually("the end of all answers") { try await token.unconfirmed().isEmpty ? () : nil }
      #expect(try await token.accounts().map(\.stage) == ["active", "active"])
    }

    private func withTwoServers(_ body: ([EndToEndFixture], HostSwap) async throws -> Void) async throws {
      try await withSplitScene { first in
        let folder = try TemporaryDirectory()
        defer { folder.remove() }
        let server = try await TestServer(in: folder)
        defer { server.end() }
        try await server.start()
        let token = first.token
        try await token.enroll(try await server.activation(for: "alice"), name: "second").succeeded()
        let second = EndToEndFixture(
          folder: folder, server: server, token: token, portal: server.portal,
          device: try #require(try await server.portal.devices().first).id, account: "second")
        let swap = HostSwap(path: first.folder.file("hostile.relay"))
        try await token.stop()
        let hostile = try HostileNetwork(at: swap.path, before: token.relayPath, treat: swap.treat)
        defer { hostile.end() }
        try await token.startDevice(at: swap.path)
        try await body([first, second], swap)
      }
    }
  }
}

/// Carries the orders for each of two servers to the other one while it is on.
private final class HostSwap: Sendable {
  private struct State {
    var isOn = false
    var trusts: [Substring: RelayTrust] = [:]
    var hosts: [Substring] = []
  }

  let path: String
  private let state = Mutex(State())

  init(path: String) { self.path = path }

  var isOn: Bool {
    get { state.withLock { $0.isOn } }
    set { state.withLock { $0.isOn = newValue } }
  }

  /// The hosts of the orders that were carried to another one.
  var hosts: [Substring] { state.withLock { $0.hosts } }

  func treat(_ bytes: [UInt8]) -> HostileNetwork.Treatment {
    switch try? RelayOrder(bytes) {
    case .send(var request, var trust):
      swap(&request.url, &trust)
      return .passed(RelayOrder.send(request, trust).bytes)
    case .stream(var request, var trust):
      swap(&request.url, &trust)
      return .passed(RelayOrder.stream(request, trust).bytes)
    default: return .passed(bytes)
    }
  }

  private func swap(_ url: inout String, _ trust: inout RelayTrust) {
    guard let origin = url.prefixMatch(of: /https:\/\/[^\/]+/)?.output else { return }
    state.withLock { state in
      state.trusts[origin] = trust
      guard state.isOn, let other = state.trusts.first(where: { $0.key != origin }) else { return }
      state.hosts.append(origin)
      url = String(other.key + url.dropFirst(origin.count))
      trust = other.value
    }
  }
}
