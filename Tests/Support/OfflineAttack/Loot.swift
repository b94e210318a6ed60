// SPDX-License-Identifier: Apache-2.0
/// The data of an attacker who has a whole SD card: everything that was ever written to it, and everything that the
/// device secret decrypts of that.
package struct Loot: Sendable {
  /// `Vault.pinBinding`, from the device secret.
  package var binding: [UInt8]
  /// Everything that the device secret decrypts, of every stored state.
  package private(set) var opened: Set<[UInt8]> = []
  /// Everything that was written, in raw form: pages, journals, audit entries.
  package private(set) var written: Set<[UInt8]> = []
  /// The encrypted tokens of fingerprints, 32 bytes, and the names of their keys. Their PIN is that of a wrapped token.
  package private(set) var companions: [(name: String, wrapped: [UInt8])] = []
  /// Client and profile IDs that a knowledge key may belong to.
  package var identities: [String]

  /// - Parameter identities: client ID followed by profile ID, of each account.
  package init(binding: [UInt8], identities: [String] = []) {
    self.binding = binding
    self.identities = identities
  }

  package mutating func add(opened secret: [UInt8]) { opened.insert(secret) }
  package mutating func add(companion name: String, _ wrapped: [UInt8]) { companions.append((name, wrapped)) }
  package mutating func add(written bytes: [UInt8]) { written.insert(bytes) }

  /// Everything that looks like a wrapped token, at any offset of the decrypted data, and the tokens of fingerprints
  /// with the key derivation of each of them. Random bytes can look like a token with parameters that would take days:
  /// one offset in a million, without the limit.
  /// - Parameter largestWork: the limit of N·r·p; candidates above it are skipped.
  func blobs(largestWork: Int = 64) -> [WrappedBlob] {
    var found: Set<WrappedBlob> = []
    for secret in opened where secret.count >= WrappedBlob.count {
      for start in 0...secret.count - WrappedBlob.count {
        guard let blob = WrappedBlob(secret[start..<start + WrappedBlob.count]), blob.work <= largestWork else {
          continue
        }
        found.insert(blob)
      }
    }
    for (name, wrapped) in companions {
      for blob in found where blob.purpose == WrappedBlob.purpose { found.insert(blob.companion(name, wrapped)) }
    }
    return found.sorted { $0.wrapped.lexicographicallyPrecedes($1.wrapped) }
  }
}

/// A wrapped token as described in docs/pin.md, parsed without the code that creates one.
struct WrappedBlob: Hashable, Sendable {
  static let count = 52

  let logCost, blockSize, parallelization: UInt8
  let salt: [UInt8]
  private(set) var wrapped: [UInt8]
  /// Of the key that encrypts the token.
  private(set) var purpose = Self.purpose

  static let purpose = "approval-token/pin-wrapped-token/v1"

  /// Another token that is encrypted with a key of the same PIN.
  func companion(_ name: String, _ wrapped: [UInt8]) -> WrappedBlob {
    var companion = self
    (companion.purpose, companion.wrapped) = ("approval-token/pin-wrapped-companion/v1/" + name, wrapped)
    return companion
  }

  /// N·r·p: the cost of a guess.
  var work: Int { Int(blockSize) * Int(parallelization) << Int(logCost) }

  init?(_ bytes: ArraySlice<UInt8>) {
    let bytes = Array(bytes)
    guard bytes.count == Self.count, bytes[0] == 1, (1...20).contains(bytes[1]), (1...32).contains(bytes[2]),
      (1...16).contains(bytes[3])
    else { return nil }
    (logCost, blockSize, parallelization) = (bytes[1], bytes[2], bytes[3])
    salt = Array(bytes[4..<20])
    wrapped = Array(bytes[20...])
  }
}
