// SPDX-License-Identifier: Apache-2.0
import CGPIOD
import Glibc
import Synchronization

/// The state that a bank's owner and its thread share.
final class BankState: Sendable {
  private struct Shared {
    var values: [Bool]
    /// Empty while the chip is not available.
    var lines: [RequestedLine] = []
    var trouble: GPIOError? = .notYetOpened
    /// The device nodes that could not be opened when the chip was last found.
    var unreadable: [String] = []
    /// The error of the last attempt to set an output. The thread handles it.
    var failure: GPIOError?
    var isEnded = false
  }

  let labels: [String]
  let inputs: [InputLine]
  let outputs: [OutputLine]
  let consumer: String
  let hear: @Sendable (_ input: Int, InputEvent) -> Void
  /// An eventfd. Readable when the thread must check this state.
  let wakeUp: Int32
  private let shared: Mutex<Shared>

  init(
    chip labels: [String], inputs: [InputLine], outputs: [OutputLine], consumer: String,
    hear: @escaping @Sendable (_ input: Int, InputEvent) -> Void
  ) {
    self.labels = labels
    self.inputs = inputs
    self.outputs = outputs
    self.consumer = consumer
    self.hear = hear
    wakeUp = approval_gpio_new_wake_up()
    guard wakeUp >= 0 else { fatalError("eventfd failed: errno \(errno)") }
    shared = Mutex(Shared(values: outputs.map { _ in false }))
  }

  deinit { Glibc.close(wakeUp) }

  var trouble: GPIOError? { shared.withLock { $0.trouble } }
  var isEnded: Bool { shared.withLock { $0.isEnded } }

  func set(_ output: Int, _ isOn: Bool) {
    let failed = shared.withLock { shared in
      shared.values[output] = isOn
      guard !shared.isEnded, !shared.lines.isEmpty else { return false }
      do throws(GPIOError) { try shared.lines[output].set(isOn) } catch { shared.failure = error }
      return shared.failure != nil
    }
    if failed { wake() }
  }

  func end() {
    shared.withLock { $0.isEnded = true }
    wake()
  }

  func takeFailure() -> GPIOError? { shared.withLock { $0.failure.take() } }

  /// Requests the outputs with their last set values.
  func openOutputs(of chip: Chip) throws(GPIOError) {
    try shared.withLock { shared throws(GPIOError) in
      var lines: [RequestedLine] = []
      for (output, isOn) in zip(outputs, shared.values) {
        lines.append(try RequestedLine(output, isOn: isOn, of: chip, consumer: consumer))
      }
      shared.lines = lines
      shared.trouble = nil
      shared.unreadable = chip.unreadable
      shared.failure = nil
    }
  }

  /// Switches the outputs off, as far as the chip still responds, and releases them.
  func closeOutputs() {
    shared.withLock { shared in
      for line in shared.lines { try? line.set(false) }
      shared.lines = []
    }
  }

  /// - Returns: whether `trouble` is news.
  func note(_ trouble: GPIOError) -> Bool {
    shared.withLock { shared in
      guard Self.isNews(trouble, after: shared.trouble, unreadable: shared.unreadable) else { return false }
      shared.trouble = trouble
      return true
    }
  }

  /// A chip that was removed stays gone: that none is found, that one cannot be read as it disappears, or that another
  /// one still cannot be opened, is no other trouble.
  /// - Parameter unreadable: the device nodes that could not be opened when the chip was last found.
  /// - Returns: whether `trouble` differs from the previous one.
  static func isNews(_ trouble: GPIOError, after previous: GPIOError?, unreadable: [String]) -> Bool {
    if case .gone = previous {
      switch trouble {
      case .noChip, .failed: return false
      case .notPermitted(let path, _) where unreadable.contains(path): return false
      default: break
      }
    }
    return trouble != previous
  }

  private func wake() {
    var one: UInt64 = 1
    _ = write(wakeUp, &one, 8)
  }
}
