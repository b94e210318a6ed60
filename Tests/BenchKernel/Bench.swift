import Glibc
import Testing

/// These suites run inside the kernel that `scripts/bench-kernel` boots.
let isBenchKernel = getenv("BENCH_KERNEL") != nil
let elsewhere: Comment = "runs inside the bench kernel: scripts/test bench-kernel"

/// The panel of the bench kernel: a GPIO chip and a keypad that are made of configuration but are real to whoever uses
/// them. One at a time; gone when the last owner lets go.
final class Bench: Sendable {
  static let label = "bench-panel"
  /// By offset, as Tests/BenchKernel/Kernel/panel has them.
  enum Line: Int, CaseIterable { case button, deny, red, green, blue, buzzer }

  init() throws { try makeChip() }

  deinit { _ = try? panel("down") }

  func makeChip() throws { try panel("up") }

  func removeChip() throws { try panel("down") }

  /// A finger on a button to ground.
  func press(_ line: Line = .button) throws { try overwrite(try file("pull", of: line), "pull-down") }

  func release(_ line: Line = .button) throws { try overwrite(try file("pull", of: line), "pull-up") }

  /// What a voltmeter says.
  func isHigh(_ line: Line) throws -> Bool { try contents(try file("value", of: line)) == "1" }

  private func file(_ name: String, of line: Line) throws -> String {
    let sim = "/sys/kernel/config/gpio-sim/panel"
    let chip = try "\(contents("\(sim)/dev_name"))/\(contents("\(sim)/bank/chip_name"))"
    return "/sys/devices/platform/\(chip)/sim_gpio\(line.rawValue)/\(name)"
  }

  @discardableResult
  private func panel(_ arguments: String...) throws -> Int32 {
    let status = system("panel " + arguments.joined(separator: " "))
    guard status == 0 else { throw BenchFailure(what: "panel \(arguments.joined(separator: " ")): status \(status)") }
    return status
  }
}

struct BenchFailure: Error {
  let what: String
}

func contents(_ path: String) throws -> String {
  guard let file = fopen(path, "re") else { throw BenchFailure(what: "\(path): errno \(errno)") }
  defer { fclose(file) }
  var bytes = [UInt8](repeating: 0, count: 65_536)
  let count = fread(&bytes, 1, bytes.count, file)
  let text = String(decoding: bytes[..<count], as: UTF8.self)
  return text.hasSuffix("\n") ? String(text.dropLast()) : text
}

/// In one write(2), as sysfs and gadgets want it.
func overwrite(_ path: String, _ bytes: some Collection<UInt8>) throws {
  let file = open(path, O_WRONLY | O_CLOEXEC)
  guard file >= 0 else { throw BenchFailure(what: "\(path): errno \(errno)") }
  defer { close(file) }
  guard write(file, Array(bytes), bytes.count) == bytes.count else {
    throw BenchFailure(what: "writing \(path): errno \(errno)")
  }
}

func overwrite(_ path: String, _ text: String) throws { try overwrite(path, text.utf8) }

/// How often the threads called `name` have gone to sleep so far.
func sleeps(ofThreadsCalled name: String) throws -> Int {
  try sleepsByThread(in: "self") { $0 == name }.values.reduce(0, +)
}

/// How often each thread of a process has gone to sleep so far, by its number.
func sleepsByThread(in process: String, where isMeant: (String) -> Bool = { _ in true }) throws -> [String: Int] {
  let folder = "/proc/\(process)/task"
  guard let tasks = opendir(folder) else { throw BenchFailure(what: "\(folder): errno \(errno)") }
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
