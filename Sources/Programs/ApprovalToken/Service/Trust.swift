// SPDX-License-Identifier: Apache-2.0
import CurlHTTP
import HTTP
import MobileAuth
import PingAMAdapter
import PrivacyIDEAAdapter
import ReferenceAdapter
import ReferenceProtocol
import Vault

/// The lower bound for the time of certificate checks, for boards whose clock is not set. Unix seconds: 2026-11-21.
let releaseTime: Int64 = 1_795_219_200

extension Vault {
  /// How a server is authenticated: by the pins of its enrollment or by a certificate authority. While the board's
  /// clock is not set, certificates are checked at the latest time that this server has reported.
  /// - Parameter server: nil for a server that is not enrolled yet.
  func trust(pins: [String], authorities: String?, of server: TokenServerID? = nil) throws -> ServerTrust {
    ServerTrust(
      pins: pins, authorityFile: authorities, earliestNow: releaseTime,
      vouchedNow: try server.map { try latestKnownTime(of: $0) } ?? 0)
  }
}

extension Vault {
  /// Whether the audit chain is broken or cannot be read.
  var isTamperedWith: Bool {
    if case .intact? = try? verifyAudit() { false } else { true }
  }
}

/// Makes the client for a token server of any kind.
struct Adapters: Sendable {
  let vault: Vault
  let authorities: String?
  let clock: any TokenClock
  var pace = PollingPace()
  /// Verifies PINs; nil on a board without a keypad.
  var pinVerifier: (any PINVerifier)?
  var takesPINForBiometric = false
  /// Nil if the board is not known.
  var capabilities: ApprovalCapabilities?
  /// Receives push messages; nil if no service runs.
  var ingress: PushIngress?
  var broker: BrokerSubscriber?

  func tokenServer(
    _ record: TokenServerRecord, report: @escaping @Sendable (TokenEvent) -> Void = { _ in }
  ) throws -> any TokenServerClient {
    let accounts = try vault.accounts().filter { $0.server == record.id }
    switch record.kind {
    case ReferenceServerClient.kind:
      return try ReferenceServerClient(
        record, accounts: accounts, registry: vault, pinBinding: vault.pinBinding,
        http: try http(record.id, pins: ReferenceServerClient.pins(of: record)), clock: clock,
        broker: broker, capabilities: capabilities)
    case PrivacyIDEA.kind:
      return try PrivacyIDEAServerClient(
        record, accounts: accounts, pinVerifier: pinVerifier,
        http: try http(record.id, pins: PrivacyIDEA.pins(of: record)),
        clock: clock, pace: pace, random: uniformFraction, report: report)
    case PingAM.kind:
      guard let ingress else { throw StateStoreError.unknown("service that takes push messages in") }
      return try PingAMServerClient(
        record, accounts: accounts, http: try http(record.id, pins: PingAM.pins(of: record)),
        dependencies: PingAMServerClient.Dependencies(
          ingress: ingress, registry: vault, deviceName: PushSettings().mechanism.deviceName, messageStore: vault,
          pinVerifier: pinVerifier, takesPINForBiometric: takesPINForBiometric,
          clock: clock, isTamperedWith: { vault.isTamperedWith }, report: report))
    default:
      throw StateStoreError.damaged("server \(record.id) is of a kind this version does not know: \(record.kind)")
    }
  }

  /// Checks without a running service whether the accounts' AM is reachable.
  func reach(_ record: TokenServerRecord) async throws {
    let accounts = try vault.accounts().filter { $0.server == record.id }
    try await PingAM.reach(accounts, over: try http(record.id, pins: PingAM.pins(of: record)))
  }

  /// The topics where AM may deliver messages. Includes accounts that AM has not confirmed yet, and both topics of an
  /// account that changes its topic.
  func mailboxes() throws(StateStoreError) -> Set<String> {
    var mailboxes: Set<String> = []
    for account in try vault.accounts(atServersOf: PingAM.kind) {
      mailboxes.formUnion([try PingAM.mailbox(of: account), try PingAM.pendingMailbox(of: account)].compactMap(\.self))
    }
    return mailboxes
  }

  private func http(_ server: TokenServerID, pins: [String]) throws -> CurlHTTPTransport {
    CurlHTTPTransport(trust: try vault.trust(pins: pins, authorities: authorities, of: server))
  }
}

/// Unix seconds by the server's clock; nil if the server has not reported it.
func serverTime(of server: any TokenServerClient) async -> Int64? {
  switch server {
  case let server as ReferenceServerClient: await server.serverTime
  case let server as PrivacyIDEAServerClient: server.serverTime
  default: nil
  }
}
