// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc

/// The duration of one operation in nanoseconds, for both classes in pairs; the order within each pair is random.
func measure(
  _ subject: Subject, _ pairs: Int, _ random: inout SeededGenerator
) -> [(first: Double, second: Double)] {
  let repetitions = repetitions(of: subject)
  return (0..<pairs).map { _ in
    let isSwapped = Bool.random(using: &random)
    let works = (subject.prepare(isSwapped), subject.prepare(!isSwapped))
    let times = (time(works.0, repetitions), time(works.1, repetitions))
    return isSwapped ? (first: times.1, second: times.0) : (first: times.0, second: times.1)
  }
}

/// The number of repetitions at which reading the clock (tens of nanoseconds) takes a thousandth of the measured time.
private func repetitions(of subject: Subject) -> Int {
  let work = subject.prepare(false)
  _ = time(work, 1000)
  return max(1, Int(50_000 / time(work, 1000)))
}

private func time(_ work: () -> Void, _ repetitions: Int) -> Double {
  // Warm up newly allocated memory.
  work()
  let start = now()
  for _ in 0..<repetitions { work() }
  return Double(now() - start) / Double(repetitions)
}

/// The monotonic clock in nanoseconds, without adjustments of its rate.
private func now() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC_RAW, &time)
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}
