// SPDX-License-Identifier: Apache-2.0
import Glibc
import Testing

/// Whether this is the kernel that `scripts/bench-kernel` boots. These suites run only inside it.
let isBenchKernel = getenv("BENCH_KERNEL") != nil
let elsewhere: Comment = "runs inside the bench kernel: scripts/test bench-kernel"

/// The panel of the bench kernel: a GPIO chip and a keypad that are simulated by kernel modules but use the real
/// interfaces. Only one may exist at a time. Removed with its last reference.
final class Bench: Sendable {
  static let label = "bench-panel"
  /// Lines by offset, as configured in Tests/BenchKernel/Kernel/panel.
  enum Line: Int, CaseIterable { case button, deny, red, green, blue, buzzer }

  init() throws { try makeChip() }

  deinit { _ = try? panel("down") }

  func makeChip() throws { try panel("up") }

  func removeChip() throws { try panel("down") }

  /// Presses a button to ground.
  func press(_ line: Line = .button) throws { try overwrite(try file("pull", of: line), "pull-down") }

  func release(_ line: Line = .button) throws { try overwrite(try file("pull", of: line), "pull-up") }

  /// The level of the line.
  func isHigh(_ line: Line) throws -> Bool { try contents(try file("value", of: line)) == "1" }

  private func file(_ name: String, of line: Line) throws -> String {
    let sim = "/sys/kernel/config/gpio-sim/panel"
    let chip = try "\(contents("\(sim)/dev_name"))/\(contents("\(sim)/bank/chip_name"))"
    return "/sys/devices/platform/\(chip)/sim_gpio\(line.rawValue)/\(name)"
  }

  @discardableResult
  private func panel(_ arguments: String...) throws -> Int32 {
    let status = system("panel " + arguments.joined(separator: " "))
    guard status == 0 else { throw BenchError(what: "panel \(arguments.joined(separator: " ")): status \(status)") }
    return status
  }
}

struct BenchError: Error {
  let what: String
}

func contents(_ path: String) throws -> String {
  guard let file = fopen(path, "re") else { throw BenchError(what: "\(path): errno \(errno)") }
  defer { fclose(file) }
  var bytes = [UInt8](repeating: 0, count: 65_536)
  let count = fread(&bytes, 1, bytes.count, file)
  let text = String(decoding: bytes[..<count], as: UTF8.self)
  return text.hasSuffix("\n") ? String(text.dropLast()) : text
}

/// Blocks this thread until the condition holds, at most ten seconds: for tests that must stay on their thread. It does
/// not report a timeout; the caller expects the condition afterwards.
func blockUntil(_ condition: () throws -> Bool) rethrows {
  let deadline = ContinuousClock.now + .seconds(10)
  while try !condition(), ContinuousClock.now < deadline { usleep(20_000) }
}

/// Writes the bytes in one write(2), as sysfs and gadgets require.
func overwrite(_ path: String, _ bytes: some Collection<UInt8>) throws {
  let file = open(path, O_WRONLY | O_CLOEXEC)
  guard file >= 0 else { throw BenchError(what: "\(path): errno \(errno)") }
  defer { close(file) }
  guard write(file, Array(bytes), bytes.count) == bytes.count else {
    throw BenchError(what: "writing \(path): errno \(errno)")
  }
}

func overwrite(_ path: String, _ text: String) throws { try overwrite(path, text.utf8) }

/// The number of times that the threads called `name` have gone to sleep so far.
func sleeps(ofThreadsCalled name: String) throws -> Int {
  try sleepsByThread(in: "self") { $0 == name }.values.reduce(0, +)
}

/// The number of times that each thread of a process has gone to sleep so far, by thread id.
func sleepsByThread(in process: String, where isMeant: (String) -> Bool = { _ in true }) throws -> [String: Int] {
  let folder = "/proc/\(process)/task"
  guard let tasks = opendir(folder) else { throw BenchError(what: "\(folder): errno \(errno)") }
  defer { closedir(tasks) }
  var counts: [String: Int] = [:]
  while let entry = readdir(tasks) {
    let task = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    guard !task.hasPrefix("."), let status = try? contents("\(folder)/\(task)/status") else { continue }
    let fields = status.split(separator: "\n").map { $0.split(separator: "\t") }
    guard fields.contains(where: { $0.count == 2 && $0[0] == "Name:" && isMeant(String($0[1])) }) else { continue }
    for field in fields where field.first == "voluntary_ctxt_switches:" { counts[task] = Int(field[1]) }
  }
  return counts
}
