import Courier
import CurlCourier
import MobileAuth
import PingAMAdapter
import PrivacyIDEAAdapter
import ReferenceAdapter
import ReferenceProtocol
import Vault

/// No certificate is judged at a time before this version existed, whatever a board without a clock believes.
/// Unix seconds: 2026-11-21.
let releaseTime: Int64 = 1_795_219_200

extension Vault {
  /// How a server is recognised: by the pins it was enrolled with, and while the board's clock is not set, at a time that
  /// this server has vouched for before.
  /// - Parameter server: nil for one that is not known yet.
  func trust(pins: [String], authorities: String?, of server: TokenServerID? = nil) throws -> ServerTrust {
    ServerTrust(
      pins: pins, authorityFile: authorities, earliestNow: releaseTime,
      vouchedNow: try server.map { try latestKnownTime(of: $0) } ?? 0)
  }
}

extension Vault {
  /// The token's own check of itself: its audit chain is not what it wrote, or cannot be read.
  var isTamperedWith: Bool {
    if case .intact? = try? verifyAudit() { false } else { true }
  }
}

/// Makes the adapter that speaks to a token server, whoever's it is.
struct Adapters: Sendable {
  let vault: Vault
  let authorities: String?
  let timekeeper: any Timekeeper
  var pace = PollingPace()
  /// Nil where nobody can type a PIN.
  var judge: (any PINJudge)?
  var takesPINForBiometric = false
  /// Nil where no board is known.
  var capabilities: ApprovalCapabilities?
  /// Where push messages come in; nil where no service runs.
  var ingress: PushIngress?
  var broker: BrokerMailbox?

  func tokenServer(
    _ record: TokenServerRecord, report: @escaping @Sendable (TokenEvent) -> Void = { _ in }
  ) throws -> any TokenServer {
    let accounts = try vault.accounts().filter { $0.server == record.id }
    switch record.kind {
    case ReferenceTokenServer.kind:
      return try ReferenceTokenServer(
        record, accounts: accounts, registry: vault, pinBinding: vault.pinBinding,
        courier: try courier(record.id, pins: ReferenceTokenServer.pins(of: record)), timekeeper: timekeeper,
        broker: broker, capabilities: capabilities)
    case PrivacyIDEA.kind:
      return try PrivacyIDEATokenServer(
        record, accounts: accounts, judge: judge, courier: try courier(record.id, pins: PrivacyIDEA.pins(of: record)),
        timekeeper: timekeeper, pace: pace, random: uniformFraction, report: report)
    case PingAM.kind:
      guard let ingress else { throw CustodyFault.unknown("service that takes push messages in") }
      return try PingAMTokenServer(
        record, accounts: accounts, courier: try courier(record.id, pins: PingAM.pins(of: record)),
        around: PingAMTokenServer.Surroundings(
          ingress: ingress, registry: vault, deviceName: PushSettings().mechanism.deviceName, shelf: vault,
          judge: judge, takesPINForBiometric: takesPINForBiometric,
          timekeeper: timekeeper, isTamperedWith: { vault.isTamperedWith }, report: report))
    default:
      throw CustodyFault.damaged("server \(record.id) is of a kind this version does not know: \(record.kind)")
    }
  }

  /// For what needs no service: whether the accounts' AM can be reached.
  func reach(_ record: TokenServerRecord) async throws {
    let accounts = try vault.accounts().filter { $0.server == record.id }
    try await PingAM.reach(accounts, over: try courier(record.id, pins: PingAM.pins(of: record)))
  }

  /// Those that AM may bring messages to: of accounts that it has yet to confirm, too, and the present and the coming one
  /// of an account that moves.
  func mailboxes() throws(CustodyFault) -> Set<String> {
    var mailboxes: Set<String> = []
    for account in try vault.accounts(atServersOf: PingAM.kind) {
      mailboxes.formUnion([try PingAM.mailbox(of: account), try PingAM.wantedMailbox(of: account)].compactMap(\.self))
    }
    return mailboxes
  }

  private func courier(_ server: TokenServerID, pins: [String]) throws -> CurlCourier {
    CurlCourier(trust: try vault.trust(pins: pins, authorities: authorities, of: server))
  }
}

/// Unix seconds by the server's clock, if it has told.
func serverTime(of server: any TokenServer) async -> Int64? {
  switch server {
  case let server as ReferenceTokenServer: await server.serverTime
  case let server as PrivacyIDEATokenServer: server.serverTime
  default: nil
  }
}
