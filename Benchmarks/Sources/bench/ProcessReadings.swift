import Foundation
import Glibc

/// What the kernel says of a process.
struct ProcessReadings {
  let processID: Int32

  /// A field of `status` in kB, in MiB.
  func mebibytes(_ field: String) -> Double { (number(field, in: "status") ?? 0) / 1024 }

  /// Proportional set size in MiB. Nil where only root may read it: the programs forbid it to everybody else.
  var proportional: Double? { number("Pss", in: "smaps_rollup").map { $0 / 1024 } }

  var threads: Int { Int(number("Threads", in: "status") ?? 0) }

  /// Context switches of all threads so far, those it wanted and those it did not.
  var contextSwitches: Int {
    let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(processID)/task")) ?? []
    return tasks.reduce(0) { sum, task in
      let status = "task/\(task)/status"
      return sum + Int(number("voluntary_ctxt_switches", in: status) ?? 0)
        + Int(number("nonvoluntary_ctxt_switches", in: status) ?? 0)
    }
  }

  /// Seconds of processor time so far, in user and kernel mode.
  var processorSeconds: Double {
    // After the name, which may hold blanks: field 14 is utime, 15 stime (proc(5)).
    let fields = text("stat").split(separator: ")").last?.split(separator: " ") ?? []
    guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else { return 0 }
    return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
  }

  private func number(_ field: String, in file: String) -> Double? {
    for line in text(file).split(separator: "\n") where line.hasPrefix("\(field):") {
      return line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Double($0) }
    }
    return nil
  }

  private func text(_ file: String) -> String {
    (try? String(contentsOfFile: "/proc/\(processID)/\(file)", encoding: .utf8)) ?? ""
  }
}

/// Seconds of processor time of this process, the load client, so far.
var ownProcessorSeconds: Double {
  var usage = rusage()
  getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
  func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
  return seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// A share of processor time in words.
func cores(_ share: Double) -> String { "\(share.text(2)) of a core" }
