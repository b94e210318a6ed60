import Courier
import CurlCourier
public import MobileAuth
import PrivacyIDEAAdapter
import ReferenceAdapter
public import Vault

/// No certificate is judged at a time before this version existed, whatever a board without a clock believes.
/// Unix seconds: 2026-11-21.
let releaseTime: Int64 = 1_795_219_200

extension Vault {
  /// How a server is recognised: by the pins it was enrolled with, at a time this token knows to have passed.
  func trust(pins: [String], authorities: String?) throws -> ServerTrust {
    ServerTrust(pins: pins, authorityFile: authorities, earliestNow: max(try latestKnownTime(), releaseTime))
  }
}

extension Vault: EnrolmentRegistry {}

/// Makes the adapter that speaks to a token server, whoever's it is.
struct Adapters: Sendable {
  let vault: Vault
  let authorities: String?
  let timekeeper: any Timekeeper
  var pace = PollingPace()
  /// Nil where nobody can type a PIN.
  var judge: (any PINJudge)?

  func tokenServer(
    _ record: TokenServerRecord, report: @escaping @Sendable (TokenEvent) -> Void = { _ in }
  ) throws -> any TokenServer {
    let accounts = try vault.accounts().filter { $0.server == record.id }
    switch record.kind {
    case ReferenceTokenServer.kind:
      return try ReferenceTokenServer(
        record, accounts: accounts, registry: vault, pinBinding: vault.pinBinding,
        courier: try courier(pins: ReferenceTokenServer.pins(of: record)), timekeeper: timekeeper)
    case PrivacyIDEA.kind:
      return try PrivacyIDEATokenServer(
        record, accounts: accounts, judge: judge, courier: try courier(pins: PrivacyIDEA.pins(of: record)),
        timekeeper: timekeeper, pace: pace, random: uniformFraction, report: report)
    default:
      throw CustodyFault.damaged("server \(record.id) is of a kind this version does not know: \(record.kind)")
    }
  }

  private func courier(pins: [String]) throws -> CurlCourier {
    CurlCourier(trust: try vault.trust(pins: pins, authorities: authorities))
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
