// SPDX-License-Identifier: Apache-2.0
import HTTP
import JSONValues
import MobileAuth
import Synchronization

/// The token server's clock, from the member `time` of its responses, which is that of the program that compares time
/// stamps; from the header `Date`, which a proxy can have replaced, until there was a `time`. A request carries a time
/// stamp that must be within 60 s of the server's time, and a board without a clock chip starts in 1970.
final class ResponseClock: Sendable {
  /// A time stamp with a larger error is refused, or soon will be.
  static let tolerance = Duration.seconds(50)
  /// 2026-01-01 in milliseconds since 1970. An earlier wall clock is not set.
  private static let earliestPlausible: Int64 = 1_767_225_600_000

  private let environment: TokenEnvironment
  private let heard = Mutex((milliseconds: Int64, isFromBody: Bool, at: MonotonicInstant, expiry: Int64?)?.none)

  init(in environment: TokenEnvironment) { self.environment = environment }

  /// Milliseconds since 1970; nil if the board's clock is not set and no server has sent the time.
  var now: Int64? {
    if let heard = heard.withLock({ $0 }) {
      return heard.milliseconds + (environment.now - heard.at).milliseconds
    }
    let own = environment.wallClockMilliseconds
    return Self.isPlausible(own) ? own : nil
  }

  /// Unix seconds by the server's clock; nil before the first response and after the expiry of the server's
  /// certificate.
  var vouchedTime: Int64? {
    guard let expiry = heard.withLock({ $0?.expiry }), let seconds = now.map({ $0 / 1000 }), seconds <= expiry else {
      return nil
    }
    return seconds
  }

  /// - Parameter milliseconds: since 1970.
  static func isPlausible(_ milliseconds: Int64) -> Bool { milliseconds >= earliestPlausible }

  /// Sets the clock from a response.
  /// - Parameter body: the response's JSON; nil for another body.
  /// - Returns: the difference between the server's time and `stamp` (milliseconds since 1970); nil without either.
  @discardableResult
  func hear(_ response: HTTPResponse, _ body: JSONValue?, comparedWith stamp: Int64? = nil) -> Duration? {
    let now = environment.now
    let time = heard.withLock { heard -> Int64? in
      let own = body?["time"]?.milliseconds
      guard let time = own ?? (heard?.isFromBody == true ? nil : Self.date(of: response)) else { return nil }
      heard = (time, own != nil, now, response.certificateExpiry)
      return time
    }
    return time.flatMap { time in stamp.map { .milliseconds(abs(time - $0)) } }
  }

  private static func date(of response: HTTPResponse) -> Int64? {
    // Whole seconds, rounded down: adding half a second is right on average.
    response.headers["Date"].flatMap(unixSeconds(httpDate:)).map { $0 * 1000 + 500 }
  }
}

extension JSONValue {
  /// Seconds since 1970, as milliseconds; nil for a time that is not plausible.
  fileprivate var milliseconds: Int64? {
    let seconds: Double
    switch self {
    case .integer(let number): seconds = Double(number)
    case .fraction(let number): seconds = number
    default: return nil
    }
    // Until the year 9999, the last one that a time stamp can have.
    guard let milliseconds = Int64(exactly: (seconds * 1000).rounded()), milliseconds < 253_402_300_800_000,
      ResponseClock.isPlausible(milliseconds)
    else { return nil }
    return milliseconds
  }
}

/// Formats a time as RFC 3339 in UTC with milliseconds.
/// - Parameter milliseconds: since 1970, not negative.
func timeStamp(_ milliseconds: Int64) -> String {
  func padded(_ number: Int64, _ width: Int) -> String {
    let digits = "\(number)"
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
  let (days, rest) = milliseconds.quotientAndRemainder(dividingBy: 86_400_000)
  // Years are counted from March so that the leap day is last.
  let shifted = days + 719_468
  let era = shifted / 146_097
  let dayOfEra = shifted % 146_097
  let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
  let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
  let shiftedMonth = (5 * dayOfYear + 2) / 153
  let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
  let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
  let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  let date = "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))"
  let time = "\(padded(rest / 3_600_000, 2)):\(padded(rest / 60_000 % 60, 2)):\(padded(rest / 1000 % 60, 2))"
  return "\(date)T\(time).\(padded(rest % 1000, 3))Z"
}
