// SPDX-License-Identifier: Apache-2.0
/// Parses the preference `wait` of a long poll: `Prefer: wait=SECONDS` (RFC 7240 §4.3).
enum LongPollWait {
  /// The maximum duration of a long poll, in seconds.
  static let longest = 55

  /// - Returns: 0 to `longest` seconds; `longest` without a valid preference.
  static func seconds(preferredBy header: String?) -> Int {
    let preferences = (header ?? "").split(separator: ",")
    let wait = preferences.compactMap { preference -> Int? in
      let halves = preference.split(separator: "=")
      guard halves.count == 2, halves[0].trimmingPrefix(while: { $0 == " " }) == "wait" else { return nil }
      return Int(halves[1])
    }
    return min(max(wait.first ?? longest, 0), longest)
  }
}
