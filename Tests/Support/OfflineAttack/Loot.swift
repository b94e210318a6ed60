/// All that a thief of a whole card has: what was ever written to it, and what the device secret opens of that.
public struct Loot: Sendable {
  /// `Vault.pinBinding`, from the device secret.
  public var binding: [UInt8]
  /// Everything that the device secret opened, of every day of the card.
  public private(set) var opened: Set<[UInt8]> = []
  /// Everything that was written, as it was written: pages, journals, audit lines.
  public private(set) var written: Set<[UInt8]> = []
  /// Client and profile ids that a knowledge key may belong to.
  public var identities: [String]

  /// - Parameter identities: client id followed by profile id, of each account.
  public init(binding: [UInt8], identities: [String] = []) {
    self.binding = binding
    self.identities = identities
  }

  public mutating func add(opened secret: [UInt8]) { opened.insert(secret) }
  public mutating func add(written bytes: [UInt8]) { written.insert(bytes) }

  /// Whatever looks like a wrapped token, at any place of what was opened. Among random bytes chance makes one look so
  /// too, with parameters that would keep the thief busy for days: one place in a million, were it not for the limit.
  /// - Parameter largestWork: N·r·p; what claims more is not worth a thief's time here.
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
    return found.sorted { $0.wrapped.lexicographicallyPrecedes($1.wrapped) }
  }
}

/// A wrapped token as docs/pin.md describes it, taken apart without the code that makes one.
struct WrappedBlob: Hashable, Sendable {
  static let count = 52

  let logCost, blockSize, parallelisation: UInt8
  let salt: [UInt8]
  let wrapped: [UInt8]

  /// N·r·p: what one guess costs.
  var work: Int { Int(blockSize) * Int(parallelisation) << Int(logCost) }

  init?(_ bytes: ArraySlice<UInt8>) {
    let bytes = Array(bytes)
    guard bytes.count == Self.count, bytes[0] == 1, (1...20).contains(bytes[1]), (1...32).contains(bytes[2]),
      (1...16).contains(bytes[3])
    else { return nil }
    (logCost, blockSize, parallelisation) = (bytes[1], bytes[2], bytes[3])
    salt = Array(bytes[4..<20])
    wrapped = Array(bytes[20...])
  }
}
