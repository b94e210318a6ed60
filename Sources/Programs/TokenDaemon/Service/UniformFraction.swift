// SPDX-License-Identifier: Apache-2.0
import Cryptography

/// A uniform random number in 0..<1, for jitter.
@Sendable func uniformFraction() -> Double {
  Double(Random.bytes(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }) / 4_294_967_296
}
