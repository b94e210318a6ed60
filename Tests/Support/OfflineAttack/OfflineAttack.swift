// SPDX-License-Identifier: Apache-2.0
/// Tries all PINs against every wrapped token in the loot, and searches for anything that distinguishes one PIN from
/// the others.
///
/// The criterion: a PIN can be identified if one of the named signs is found for it. Each sign occurs by chance, over
/// all tokens together, with a probability below one in a thousand. For signs that do occur by chance, as coincidences
/// of short pieces, their number must match the expected one (`coincidences`). No sign for any PIN means that all PINs
/// explain the loot equally well.
package struct OfflineAttack: Sendable {
  /// A sign that distinguishes PINs.
  package struct Sign: Sendable, Hashable {
    package let what: String
    /// The PINs that the sign indicates.
    package let pins: [String]
  }

  package let loot: Loot
  package let pins: [String]
  let blobs: [WrappedBlob]
  /// The 32 bytes that each blob unwraps to with each PIN, as four words.
  let tokens: [[SIMD4<UInt64>]]

  /// Unwraps every token with every PIN: the number of key derivations is the product of both numbers.
  package init(on loot: Loot, pins: [String]) async {
    self.loot = loot
    self.pins = pins
    let blobs = loot.blobs()
    self.blobs = blobs
    tokens = await withTaskGroup(of: (Int, [SIMD4<UInt64>]).self) { group in
      for (index, blob) in blobs.enumerated() {
        group.addTask {
          (index, pins.map { words(Formula.token(in: blob, pin: Array($0.utf8), binding: loot.binding)) })
        }
      }
      var tokens = [[SIMD4<UInt64>]](repeating: [], count: blobs.count)
      for await (index, unwrapped) in group { tokens[index] = unwrapped }
      return tokens
    }
  }

  /// All five-digit PINs.
  package static let fiveDigits = (0..<100_000).map { String("\(100_000 + $0)".dropFirst()) }

  /// The number of different wrapped tokens in the loot.
  package var blobCount: Int { blobs.count }

  /// Whether one of the tokens is unwrapped with this PIN: shows in tests that the attack works.
  package func unwraps(_ token: [UInt8], with pin: String) -> Bool {
    guard let index = pins.firstIndex(of: pin) else { return false }
    return tokens.contains { $0[index] == words(token) }
  }

  /// All signs that were found.
  package func signs() async -> [Sign] { joins() + relations() + structures() + (await verifiers()) }
}

func words(_ bytes: [UInt8]) -> SIMD4<UInt64> {
  bytes.withUnsafeBytes { $0.loadUnaligned(as: SIMD4<UInt64>.self) }
}

func bytes(_ words: SIMD4<UInt64>) -> [UInt8] { withUnsafeBytes(of: words) { Array($0) } }
