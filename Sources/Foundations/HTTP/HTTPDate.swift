// SPDX-License-Identifier: Apache-2.0
/// Parses an IMF-fixdate (RFC 9110 §5.6.7), "Sun, 06 Nov 1994 08:49:37 GMT", to Unix seconds from 0 to 253402300799,
/// the end of the year 9999; nil for other text. The obsolete forms are not accepted: token servers do not send them.
package func unixSeconds(httpDate text: String) -> Int64? {
  let parts = text.split(separator: " ")
  let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
  guard parts.count == 6, parts[0].hasSuffix(","), parts[5] == "GMT", let day = Int64(parts[1]),
    let month = months.firstIndex(of: String(parts[2])), let year = Int64(parts[3]), (1970...9999).contains(year),
    (1...31).contains(day)
  else { return nil }
  let clock = parts[4].split(separator: ":").compactMap { Int64($0) }
  guard clock.count == 3, (0...23).contains(clock[0]), (0...59).contains(clock[1]), (0...60).contains(clock[2])
  else { return nil }
  let days = daysSinceEpoch(year: year, month: Int64(month) + 1, day: day)
  let seconds = days * 86_400 + clock[0] * 3600 + clock[1] * 60 + clock[2]
  // A leap second could give a time in the year 10000.
  return seconds <= 253_402_300_799 ? seconds : nil
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar. Years begin in March, so that the leap day is last.
private func daysSinceEpoch(year: Int64, month: Int64, day: Int64) -> Int64 {
  let shiftedYear = month > 2 ? year : year - 1
  let yearOfEra = shiftedYear % 400
  let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
  return shiftedYear / 400 * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
}
