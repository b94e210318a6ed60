// SPDX-License-Identifier: Apache-2.0
import MobileAuth

/// Registers a changed mailbox (device token) of each account with AM (AM 8.0.1 and later). Until AM confirms it, AM
/// sends messages to the previous mailbox.
struct MailboxRefresh: Sendable {
  let client: PingAMHTTPClient
  let ingress: PushIngress
  let registry: any SharedEnrollmentRegistry
  let server: TokenServerID
  let deviceName: String
  let environment: TokenEnvironment
  let isLocked: @Sendable (AccountID) -> Bool

  private static let pauses = (first: Duration.seconds(5), longest: Duration.seconds(3600))

  /// Registers the new mailbox of each active account. Retries with backoff from 5 s to 1 h.
  /// Returns when no change is left, or when a retry cannot help.
  /// - Throws: `CancellationError`.
  func run() async throws {
    let accounts = try await allAccounts().filter { $0.server == server && $0.stage == .active }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for record in accounts {
        guard let mechanism = try? Mechanism(record), let wanted = mechanism.metadata.wantedDeviceToken else {
          continue
        }
        group.addTask { [id = record.id] in
          try await untilSubscribed(to: wanted)
          try await move(id, mechanism, to: wanted)
        }
      }
      try await group.waitForAll()
    }
  }

  /// Reads the accounts, again and again while the storage fails.
  private func allAccounts() async throws -> [AccountRecord] {
    while true {
      if let accounts = try? registry.accounts() { return accounts }
      try await environment.sleep(for: Self.pauses.first)
    }
  }

  /// Waits until the channel of the new mailbox is up. AM's messages to a mailbox without a subscriber would be lost.
  private func untilSubscribed(to mailbox: String) async throws(CancellationError) {
    let changes = ingress.changes()
    if ingress.channelFault(of: mailbox) == nil { return }
    for await _ in changes where ingress.channelFault(of: mailbox) == nil { return }
    throw CancellationError()
  }

  private func move(_ account: AccountID, _ mechanism: Mechanism, to wanted: String) async throws {
    var pause = Self.pauses.first
    while await shouldRetryRefresh(account, mechanism, wanted) {
      try await environment.sleep(for: pause)
      pause = min(pause * 2, Self.pauses.longest)
    }
  }

  private func shouldRetryRefresh(_ account: AccountID, _ mechanism: Mechanism, _ wanted: String) async -> Bool {
    // A policy's lock can open without a notification: retry.
    if isLocked(account) { return true }
    do throws(TokenServerError) {
      try await notify(mechanism)
      try confirm(wanted, of: account)
      return false
    } catch {
      environment.report(.trouble(account, "the new mailbox is not registered with AM: \(error)"))
      return error.effect == .retry
    }
  }

  private func notify(_ mechanism: Mechanism) async throws(TokenServerError) {
    guard let body = mechanism.refresh(deviceName: deviceName) else {
      throw .refused("AM's registration has no user ID (AM before 8.0.1 sends none); enroll again")
    }
    let url = mechanism.metadata.registrationURL.replacing("_action=register", with: "_action=refresh")
    let reply: PingAMHTTPClient.Reply
    do { reply = try await client.post(body, to: url, cookie: mechanism.metadata.cookie) } catch {
      // Only 400 and 501 are AM's decisions. A gateway in front of AM may allow the request later.
      guard error.effect == .retry || error == .unsupported else { throw .unreachable(error.explanation) }
      throw error
    }
    switch reply {
    case .stored: return
    case .refused: throw .refused("AM no longer knows this mechanism, or its push provider rejects the mailbox (400)")
    }
  }

  /// Stores the mailbox as confirmed. The account may have been changed or removed while the request was on its way.
  private func confirm(_ token: String, of account: AccountID) throws(TokenServerError) {
    do {
      let updated = try registry.update(account) { record in
        guard let delivery = record.delivery else { return nil }
        var record = record
        record.delivery = DeliveryAddress(token, wanted: delivery.wanted == token ? nil : delivery.wanted)
        return record
      }
      if updated == nil { return }
    } catch { throw .unreachable("\(error)") }
    environment.report(.mailboxMoved(account))
  }
}
