// SPDX-License-Identifier: Apache-2.0
import CGPIOD
import Glibc
import Synchronization
import Threads

/// The lines of one chip that a board uses: inputs, which report events, and outputs. Its own thread sleeps until an
/// edge comes, a bounce has settled, or device nodes change. When the chip disappears the inputs report `unavailable`.
/// When it returns they are opened again and the outputs get their last set values.
///
/// Outputs are off until they are set, and are switched off when the bank is closed. After a crash the kernel releases
/// the lines; their level then depends on the chip's driver.
package final class LineBank: Sendable {
  private let state: BankState
  private let thread: Mutex<LoopThread?>

  /// - Parameters:
  ///   - labels: the possible labels of the chip, which differ between kernels.
  ///   - consumer: the consumer name that other programs see for the lines.
  ///   - hear: called with the index in `inputs` and the event, on the bank's own thread; never after `close`.
  package init(
    chip labels: [String], inputs: [InputLine], outputs: [OutputLine], consumer: String = "approval-token",
    _ hear: @escaping @Sendable (_ input: Int, InputEvent) -> Void
  ) {
    state = BankState(chip: labels, inputs: inputs, outputs: outputs, consumer: consumer, hear: hear)
    thread = Mutex(LoopThread(named: "gpio") { [state] in BankLoop(state).run() })
  }

  deinit { close() }

  /// Why the lines cannot be used now; nil while they can be used.
  package var trouble: GPIOError? { state.trouble }

  /// Sets an output. Does not block. While the chip is not available the value is stored and set when the chip returns.
  package func set(_ output: Int, _ isOn: Bool) { state.set(output, isOn) }

  /// Switches the outputs off, releases all lines and waits until that is done (some milliseconds).
  package func close() {
    state.end()
    thread.withLock { $0.take() }?.join()
  }
}
