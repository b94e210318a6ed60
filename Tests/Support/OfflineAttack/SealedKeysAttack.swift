// SPDX-License-Identifier: Apache-2.0
extension OfflineAttack {
  /// Attacks the form that the token verifies itself: every `SealedKeys` in the loot identifies its PIN when all are
  /// tried.
  /// - Returns: the PIN, and the number of key derivations.
  package static func pin(
    ofSealedKeys sealed: [UInt8], binding: [UInt8], pins: [String]
  ) -> (pin: String, derivations: Int)? {
    guard sealed.count > 52, sealed[0] == 1 else { return nil }
    for (tried, pin) in pins.enumerated() {
      let key = Formula.key(
        pin: Array(pin.utf8), salt: Array(sealed[4..<20]), logCost: sealed[1], blockSize: sealed[2],
        parallelization: sealed[3], binding: binding, purpose: "approval-token/pin-sealed-keys/v1")
      if Formula.hkdf(key, info: "commit") == Array(sealed[20..<52]) { return (pin, tried + 1) }
    }
    return nil
  }
}
