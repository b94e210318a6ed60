// SPDX-License-Identifier: Apache-2.0
import ControlProtocol

extension LEDStatus {
  /// The meaning for a user who need not count: with the number in place of "n", and of numbered causes only the one
  /// that applies.
  var words: String {
    guard let count else { return meaning }
    let halves = meaning.split(separator: ":", maxSplits: 1)
    if halves.count == 2 {
      let number = " \(count) "
      guard let cause = halves[1].split(separator: ",").first(where: { $0.hasPrefix(number) }) else { return meaning }
      return "\(halves[0]): \(cause.dropFirst(number.count))"
    }
    let words = meaning.split(separator: " ").map { word -> String in
      switch word {
      case "n": "\(count)"
      case "attempts" where count == 1: "attempt"
      default: String(word)
      }
    }
    return words.joined(separator: " ")
  }
}
