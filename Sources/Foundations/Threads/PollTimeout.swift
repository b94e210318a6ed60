// SPDX-License-Identifier: Apache-2.0

extension Duration {
  /// As the time limit of poll(2) and the like: milliseconds, rounded up, so that no wait ends early, and clamped to
  /// 0...`Int32.max`.
  package var pollMilliseconds: Int32 {
    let (seconds, attoseconds) = components
    let (milliseconds, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    let (sum, overflowsToo) = milliseconds.addingReportingOverflow(
      (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    return overflow || overflowsToo ? (seconds < 0 ? 0 : .max) : Int32(clamping: max(0, sum))
  }
}
