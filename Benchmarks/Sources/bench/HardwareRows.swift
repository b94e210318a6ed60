// SPDX-License-Identifier: Apache-2.0
import Boards
import Foundation
import FrontPanel
import GPIO
import Glibc
import MobileAuth
import Secrets
import USBKeypad

/// Inside the bench kernel: the latency of button and key events in the panel, compared with C programs that do nothing
/// else. They alternate, because a line and a keypad can have only one owner at a time.
enum HardwareRows {
  private static let turns = 10
  private static let timesPerTurn = 60
  private static let goal = 1.3

  static func measure(on stage: Stage) throws -> [Row] {
    guard getenv("BENCH_KERNEL") != nil else {
      throw BenchError("there is no hardware here: scripts/bench hardware measures inside scripts/bench-kernel")
    }
    try shell("panel up")
    try shell("panel plug")
    defer { _ = try? shell("panel unplug; panel down") }
    let references = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().path
    return try edgeRows(references, log: stage.directory + "/reference-gpio.log")
      + reportRows(references, log: stage.directory + "/reference-usb.log")
  }

  // MARK: From the edge of a release to the gesture

  private static func edgeRows(_ references: String, log: String) throws -> [Row] {
    let button = try SimulatedLine(0)
    let window = Double(Debouncer.usualWindow.components.attoseconds) / 1e18
    var (plain, patient, ours): ([Double], [Double], [Double]) = ([], [], [])
    for _ in 0..<turns {
      plain += try releases(of: button, heardBy: references + "/reference-gpio", window: 0, log: log)
      patient += try releases(of: button, heardBy: references + "/reference-gpio", window: window, log: log)
      ours += try blocking { try await PanelEar().releases(of: button, timesPerTurn) }
    }
    let panel = Sample(ours.map { $0 - window })
    return rows(
      "panel: edge to accept, less the debounce window", panel,
      "a C program with libgpiod: edge to read", Sample(plain))
      + rows(
        "the same beside C that debounces too", panel,
        "a C program with libgpiod: edge to rest, less the window", Sample(patient.map { $0 - window }))
  }

  private static func releases(
    of button: SimulatedLine, heardBy program: String, window: Double, log: String
  ) throws -> [Double] {
    let reference = try Child(program, ["bench-panel", "0", "\(Int(window * 1e6))"], log: log)
    guard try reference.readLine() == "ready" else { throw BenchError("reference-gpio is not ready") }
    defer { reference.end() }
    return try (0..<timesPerTurn).map { number in
      let released = try blocking { try await button.tap(number) }
      return try reference.readInstant() - released
    }
  }

  // MARK: From a report to the digit

  private static func reportRows(_ references: String, log: String) throws -> [Row] {
    var theirs: [Double] = []
    var ours: [Double] = []
    for _ in 0..<turns {
      let reference = try Child(references + "/reference-usb", ["1d6b", "0104"], log: log)
      guard try reference.readLine() == "ready" else { throw BenchError("reference-usb is not ready") }
      theirs += try keys { try reference.readInstant() }
      reference.end()
      let ear = KeypadEar()
      let keypad = try USBKeypad(into: ear)
      ear.available.wait()
      ours += try keys { ear.next() }
      keypad.close()
    }
    return rows("keypad: report to digit", Sample(ours), "a C program with libusb: report to read", Sample(theirs))
  }

  private static func keys(heardAt heard: () throws -> Instant) throws -> [Double] {
    let gadget = open("/dev/hidg0", O_RDWR | O_CLOEXEC)
    guard gadget >= 0 else { throw BenchError("/dev/hidg0: \(String(cString: strerror(errno)))") }
    defer { close(gadget) }
    return try (0..<timesPerTurn).map { number in
      var report: [UInt8] = [0, 0, UInt8(0x59 + number % 10), 0, 0, 0, 0, 0]
      let sent = Instant.now
      guard write(gadget, report, report.count) == report.count else { throw BenchError("a report was not taken") }
      let delay = try heard() - sent
      report[2] = 0
      guard write(gadget, report, report.count) == report.count else { throw BenchError("a report was not taken") }
      pause(seconds: 0.03)
      return delay
    }
  }

  private static func rows(_ what: String, _ ours: Sample, _ reference: String, _ theirs: Sample) -> [Row] {
    let (middle, tail) = (ours.median / theirs.median, ours.quantile(0.99) / theirs.quantile(0.99))
    return [
      Row(
        what, "\(middle.text(2)) × C at p50, \(tail.text(2)) × at p99: \(ours.inMicroseconds)",
        goal: "≤ \(goal) × C", met: middle <= goal && tail <= goal),
      Row("  " + reference, theirs.inMicroseconds),
    ]
  }
}

/// A simulated line of the bench's chip.
private struct SimulatedLine {
  private let file: Int32

  init(_ offset: Int) throws {
    let sim = "/sys/kernel/config/gpio-sim/panel"
    func text(_ path: String) throws -> String {
      try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .newlines)
    }
    let chip = try text(sim + "/dev_name") + "/" + text(sim + "/bank/chip_name")
    file = open("/sys/devices/platform/\(chip)/sim_gpio\(offset)/pull", O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { throw BenchError("line \(offset): \(String(cString: strerror(errno)))") }
  }

  func pull(down: Bool) throws {
    let word = down ? "pull-down" : "pull-up"
    guard pwrite(file, word, word.utf8.count, 0) == word.utf8.count else { throw BenchError("the line was not pulled") }
  }

  /// Presses and releases from a separate thread, and returns when it released. This kernel delivers edges at its ticks
  /// of 10 ms: the pauses distribute the releases evenly between the ticks, for all measured programs alike.
  func tap(_ number: Int) async throws -> Instant {
    // Multiples of the golden ratio cover the whole interval.
    let phase = (Double(number) * 0.618_033_988_75).truncatingRemainder(dividingBy: 1)
    return try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(
          with: Result {
            pause(seconds: 0.06)
            try pull(down: true)
            pause(seconds: 0.06 + phase * 0.01)
            let released = Instant.now
            try pull(down: false)
            return released
          })
      }
    }
  }
}

/// The panel as in the service, with short times to shorten the measurement.
private struct PanelEar {
  private let board: HardwareBoard
  private let panel: FrontPanel

  init() throws {
    let profile = try BoardCatalog.profile("boards/bench-kernel/board.toml")
    guard let lines = profile.lines else { throw BenchError("the bench's board has no lines") }
    board = try HardwareBoard(lines, keypad: nil, clock: SystemClock())
    var timing = GestureTiming()
    timing.guardTime = .milliseconds(20)
    timing.acceptHold = .milliseconds(40)
    panel = FrontPanel(
      button: board.button, indicator: board.indicator, clock: SystemClock(), timing: timing)
  }

  func releases(of button: SimulatedLine, _ count: Int) async throws -> [Double] {
    let running = Task { await panel.run() }
    while !board.troubles.isEmpty { try await Task.sleep(for: .milliseconds(20)) }
    var delays: [Double] = []
    for number in 0..<count {
      let finger = Task { try await button.tap(number) }
      for await event in panel.events(for: .confirmation) {
        guard case .gesture(let gesture) = event else { continue }
        let heard = Instant.now
        guard gesture.kind == .hold else { throw BenchError("a hold was taken for \(gesture.kind)") }
        delays.append(heard - (try await finger.value))
      }
    }
    running.cancel()
    await running.value
    board.close()
    return delays
  }
}

/// Receives digits on the keypad's own thread.
private final class KeypadEar: KeySink, @unchecked Sendable {
  let available = DispatchSemaphore(value: 0)
  private let heard = DispatchSemaphore(value: 0)
  /// Written before `heard` is signaled, read after.
  private var instant = Instant.now

  func press(_ key: KeyPress) {
    instant = .now
    heard.signal()
  }
  func keypadIsUnavailable(_ why: String) {}
  func keypadIsAvailable() { available.signal() }

  func next() -> Instant {
    heard.wait()
    return instant
  }
}

extension Child {
  fileprivate func readInstant() throws -> Instant {
    guard let nanoseconds = Int64(try readLine()) else { throw BenchError("not a number of nanoseconds") }
    return Instant(nanoseconds: nanoseconds)
  }
}

extension Sample {
  fileprivate var inMicroseconds: String {
    "\((median * 1e6).text(0)) µs (p99 \((quantile(0.99) * 1e6).text(0)) µs, n = \(count))"
  }
}

private func shell(_ command: String) throws {
  guard system(command) == 0 else { throw BenchError(command) }
}

private func blocking<Result: Sendable>(_ body: @escaping @Sendable () async throws -> Result) throws -> Result {
  let done = DispatchSemaphore(value: 0)
  nonisolated(unsafe) var result: Swift.Result<Result, any Error>?
  Task.detached {
    do { result = .success(try await body()) } catch { result = .failure(error) }
    done.signal()
  }
  done.wait()
  guard let result else { throw BenchError("nothing came of it") }
  return try result.get()
}
