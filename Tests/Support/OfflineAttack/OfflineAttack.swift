/// Tries all PINs against every wrapped token in the loot, and looks for anything that tells one PIN from the others.
///
/// The criterion: a PIN can be told if one of the named signs shows for it. Each sign is such that chance shows it for
/// all tokens together with a probability below one in a thousand; where chance does show it, as single coincidences of
/// short pieces, their number must be what chance makes it (`coincidences`). No sign for any PIN means that all PINs
/// explain the loot equally well.
public struct OfflineAttack: Sendable {
  /// Something that tells PINs from others.
  public struct Sign: Sendable, Hashable {
    public let what: String
    /// The PINs that it speaks for.
    public let pins: [String]
  }

  public let loot: Loot
  public let pins: [String]
  let blobs: [WrappedBlob]
  /// Per blob and PIN the 32 bytes that it unwraps, as four words.
  let tokens: [[SIMD4<UInt64>]]

  /// Unwraps every token with every PIN: as many key derivations as PINs times tokens.
  public init(on loot: Loot, pins: [String]) async {
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
  public static let fiveDigits = (0..<100_000).map { String("\(100_000 + $0)".dropFirst()) }

  /// How many different wrapped tokens there were in the loot.
  public var blobCount: Int { blobs.count }

  /// Whether one of the tokens comes out under this PIN: for tests to see that the attack attacks the right thing.
  public func unwraps(_ token: [UInt8], with pin: String) -> Bool {
    guard let index = pins.firstIndex(of: pin) else { return false }
    return tokens.contains { $0[index] == words(token) }
  }

  /// Everything that tells a PIN.
  public func signs() async -> [Sign] { joins() + relations() + structures() + (await verifiers()) }
}

func words(_ bytes: [UInt8]) -> SIMD4<UInt64> {
  bytes.withUnsafeBytes { $0.loadUnaligned(as: SIMD4<UInt64>.self) }
}

func bytes(_ words: SIMD4<UInt64>) -> [UInt8] { withUnsafeBytes(of: words) { Array($0) } }
