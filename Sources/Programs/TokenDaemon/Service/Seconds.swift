// SPDX-License-Identifier: Apache-2.0
extension Duration {
  /// "6 seconds", "4.5 seconds".
  var inSeconds: String {
    let tenths = (components.seconds * 10) + components.attoseconds / 100_000_000_000_000_000
    let (whole, rest) = tenths.quotientAndRemainder(dividingBy: 10)
    return "\(whole)\(rest == 0 ? "" : ".\(rest)") seconds"
  }
}
