/// `Prefer: wait=SECONDS` (RFC 7240 §4.3).
enum LongPollWait {
  /// The maximum wait of a long poll in seconds; a longer preference is reduced.
  static let longest = 55

  /// - Returns: 0 to `longest`; `longest` if the header prefers nothing that can be read.
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
