// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import MobileAuth

extension TokenEnvironment {
  /// The clocks of the operating system and the random numbers of the cryptographic library.
  package static func system(
    report: @escaping @Sendable (TokenEvent) -> Void = { _ in }
  ) -> TokenEnvironment {
    TokenEnvironment(clock: SystemClock(), random: uniformFraction, makeUUID: { Random.uuid() }, report: report)
  }
}

/// A uniform random number in 0..<1.
@Sendable private func uniformFraction() -> Double {
  Double(Random.bytes(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }) / 4_294_967_296
}
