import Courier
import CurlCourier
public import MobileAuth
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

  /// The adapter for one server.
  func tokenServer(
    _ record: TokenServerRecord, authorities: String?, timekeeper: any Timekeeper
  ) throws -> ReferenceTokenServer {
    guard record.kind == ReferenceTokenServer.kind else {
      throw CustodyFault.damaged("server \(record.id) is of a kind this version does not know: \(record.kind)")
    }
    let courier = CurlCourier(
      trust: try trust(pins: ReferenceTokenServer.pins(of: record), authorities: authorities))
    return try ReferenceTokenServer(
      record, accounts: accounts().filter { $0.server == record.id }, registry: self, pinBinding: pinBinding,
      courier: courier, timekeeper: timekeeper)
  }
}

extension Vault: EnrolmentRegistry {}
