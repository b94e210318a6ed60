// SPDX-License-Identifier: Apache-2.0
extension OfflineAttack {
  /// A token, its digest or its public knowledge key anywhere in storage, as bytes or hexadecimal: it identifies the
  /// PIN. Searches the first 8 bytes at every offset of everything. Chance: 10⁷ windows times 10⁷ values in 2⁶⁴.
  func verifiers() async -> [Sign] {
    let windows = windows()
    return await withTaskGroup(of: [Sign].self) { group in
      for (blob, tokens) in tokens.enumerated() {
        group.addTask {
          var signs: [Sign] = []
          for (pin, token) in tokens.enumerated() {
            for (name, value) in telltales(of: bytes(token), blob) where isFound(value, in: windows) {
              signs.append(Sign(what: "\(name) of token \(blob) is in the storage", pins: [pins[pin]]))
            }
          }
          return signs
        }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
  }

  private func telltales(of token: [UInt8], _ blob: Int) -> [(String, [UInt8])] {
    [("the value", token), ("the digest", Formula.sha256(token))]
      + loot.identities.map { ("the knowledge key", Formula.knowledge(of: token, identity: $0)) }
  }

  private func isFound(_ value: [UInt8], in windows: Set<UInt64>) -> Bool {
    windows.contains(firstWord(value))
      || windows.contains(firstWord(hexadecimal(value[..<4]))) && windows.contains(firstWord(hexadecimal(value[4..<8])))
  }

  private func windows() -> Set<UInt64> {
    var windows: Set<UInt64> = []
    for text in loot.opened.union(loot.written) where text.count >= 8 {
      text.withUnsafeBytes { bytes in
        for start in 0...bytes.count - 8 {
          windows.insert(bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self))
        }
      }
    }
    return windows
  }
}

private func firstWord(_ bytes: [UInt8]) -> UInt64 {
  bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
}

private func hexadecimal(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
  let digits = Array("0123456789abcdef".utf8)
  return bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
}
