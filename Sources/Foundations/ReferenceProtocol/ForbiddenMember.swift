// SPDX-License-Identifier: Apache-2.0

/// A member of a JSON object that must not be there: every value but null is refused.
package struct ForbiddenMember: Codable, Sendable, Equatable {
  package init(from decoder: any Decoder) throws {
    throw DecodingError.dataCorrupted(
      .init(codingPath: decoder.codingPath, debugDescription: "this member must not be there"))
  }

  package func encode(to encoder: any Encoder) throws {}
}
