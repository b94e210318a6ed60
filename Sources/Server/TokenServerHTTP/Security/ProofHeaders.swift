// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import TokenServerCore

/// The parsed headers of recent DPoP proofs: all proofs of a device have the same header, and parsing its key takes a
/// third of the time of the signature.
struct ProofHeaders: Sendable {
  /// The maximum length of a header that is kept, in bytes: twice what a token sends. An entry takes about 2 KB.
  private static let longest = 512

  private let recent = RecentValues<[UInt8], DPoPProof.ParsedHeader>(capacity: 2000)

  func parsed(_ header: [UInt8]) throws(WireError) -> DPoPProof.ParsedHeader {
    guard header.count <= Self.longest else { return try DPoPProof.ParsedHeader(header) }
    if let known = recent[header] { return known }
    let parsed = try DPoPProof.ParsedHeader(header)
    recent.insert(parsed, for: header)
    return parsed
  }
}
