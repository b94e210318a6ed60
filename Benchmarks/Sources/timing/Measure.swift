import ApprovalTestKit
import Glibc

/// Nanoseconds for each time the thing is done, in both classes, side by side; which comes first is drawn.
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

/// So many that a reading of the clock (tens of nanoseconds) is a thousandth of what is measured.
private func repetitions(of subject: Subject) -> Int {
  let work = subject.prepare(false)
  _ = time(work, 1000)
  return max(1, Int(50_000 / time(work, 1000)))
}

private func time(_ work: () -> Void, _ repetitions: Int) -> Double {
  // Whatever the memory it is new in costs is paid before.
  work()
  let start = now()
  for _ in 0..<repetitions { work() }
  return Double(now() - start) / Double(repetitions)
}

/// Nanoseconds, not slewed by anybody who sets the clock.
private func now() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC_RAW, &time)
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}
