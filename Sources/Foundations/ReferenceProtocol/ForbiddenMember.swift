// SPDX-License-Identifier: Apache-2.0

/// A member of a JSON object that must not be there: every value is refused. It is the type of an optional member.
package struct ForbiddenMember: Codable, Sendable, Equatable {
  fileprivate static let why = "this member must not be there"

  package init(from decoder: any Decoder) throws {
    throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: Self.why))
  }

  package func encode(to encoder: any Encoder) throws {}
}

extension KeyedDecodingContainer {
  /// Synthesized conformances call it for optional members; the general one takes null for a member that is not there.
  package func decodeIfPresent(_ type: ForbiddenMember.Type, forKey key: Key) throws -> ForbiddenMember? {
    guard contains(key) else { return nil }
    throw DecodingError.dataCorruptedError(forKey: key, in: self, debugDescription: ForbiddenMember.why)
  }
}
