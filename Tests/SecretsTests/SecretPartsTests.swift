// SPDX-License-Identifier: Apache-2.0
import Secrets
import Testing

@Suite("Several secrets in one", .timeLimit(.minutes(5))) struct SecretPartsTests {
  @Test("Are split into the original parts", arguments: [[], [0], [1], [0, 0, 0], [3, 0, 70_000, 1]])
  func areSplitIntoTheOriginalParts(counts: [Int]) throws {
    let parts = counts.map { count in (0..<count).map { UInt8(truncatingIfNeeded: $0 &+ 255) } }
    let joined = SecretBytes.joining(parts.map { SecretBytes(copying: $0) })
    #expect(joined.count == parts.reduce(0) { $0 + 4 + $1.count })
    let apart = try #require(joined.parts())
    #expect(apart.map { $0.withExposedSecret { Array($0) } } == parts)
  }

  @Test(
    "That are not an encoding are not split",
    arguments: [
      [0], [0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 2, 7], [0, 0, 0, 1, 7, 0], [255, 255, 255, 255], [127, 255, 255, 255, 0],
    ] as [[UInt8]])
  func thatAreNotAnEncodingAreNotSplit(bytes: [UInt8]) {
    #expect(SecretBytes(copying: bytes).parts() == nil)
  }
}
