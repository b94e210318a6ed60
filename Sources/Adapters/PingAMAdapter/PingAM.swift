// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import HTTP
package import MobileAuth
import Secrets

/// Functions on accounts with a push mechanism of PingAM (formerly ForgeRock AM).
package enum PingAM {
  /// The `kind` of `TokenServerRecord` for AM.
  package static let kind = "pingam"

  /// Checks that the AM of each account is reachable and trusted. AM does not report whether it still knows the
  /// accounts.
  package static func reach(_ accounts: [AccountRecord], over http: any HTTPTransport) async throws {
    let urls = Set(try accounts.compactMap { try Mechanism($0)?.metadata.authenticationURL })
    for url in urls.sorted() { try await PingAMHTTPClient(http: http).reach(url) }
  }

  /// Returns a mailbox name of 128 random bits in hexadecimal.
  package static func makeMailbox() -> String { Random.bytes(16).lowercaseHex }

  /// Derives the transaction ID of a message: a version 8 UUID (RFC 9562 §5.8). A message delivered again, even with
  /// another message ID, has the same transaction ID.
  static func transaction(mechanismUID: String, challenge: [UInt8]) -> TransactionID {
    let hash = SHA256.hash(Array("approval-token/pingam\n\(mechanismUID)\n".utf8) + challenge)
    guard let transaction = TransactionID(derivedUUID(hash)) else { preconditionFailure("not a UUID") }
    return transaction
  }
}
