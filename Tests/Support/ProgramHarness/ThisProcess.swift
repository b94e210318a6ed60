// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Measurements of the current process (`/proc/self`).
package enum ThisProcess {
  /// The maximum resident memory so far, in kB.
  package static func peakMemory() throws -> Int { try number("VmHWM", in: "status") }

  /// The ids of its threads with a given name.
  package static func threads(named name: String) -> [String] {
    let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
    return all.filter { (try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8)) == "\(name)\n" }
  }

  /// Whether a thread is idle during at least one of several intervals. Earlier work may take long on a busy machine,
  /// but a polling thread is never idle for a whole interval.
  package static func sleeps(_ thread: String, through aWhile: () async throws -> Void) async throws -> Bool {
    for _ in 1...10 {
      let before = try number("voluntary_ctxt_switches", in: "task/\(thread)/status")
      try await aWhile()
      if try number("voluntary_ctxt_switches", in: "task/\(thread)/status") == before { return true }
    }
    return false
  }

  /// The processor time that a thread has used so far, in hundredths of a second (proc_pid_stat(5)).
  package static func processorTime(of thread: String) throws -> Int {
    let text = try String(contentsOfFile: "/proc/self/task/\(thread)/stat", encoding: .utf8)
    // The second field is the thread's name in parentheses.
    let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
    guard fields.count > 13, let user = Int(fields[12]), let system = Int(fields[13]) else {
      throw OutputTimeoutError(description: "the processor time in \(text)")
    }
    return user + system
  }

  private static func number(_ field: String, in file: String) throws -> Int {
    let text = try String(contentsOfFile: "/proc/self/\(file)", encoding: .utf8)
    guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix(field + ":") }),
      let number = Int(line.dropFirst(field.count + 1).split(whereSeparator: \.isWhitespace)[0])
    else { throw OutputTimeoutError(description: "\(field) in /proc/self/\(file)") }
    return number
  }
}
