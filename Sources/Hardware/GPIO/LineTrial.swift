// SPDX-License-Identifier: Apache-2.0
/// Requests single lines of a chip, to diagnose each of them (`board check`). Not for the service: it does not wait for
/// a missing chip.
package final class LineTrial: Sendable {
  /// The consumer name of a line during the test.
  private static let consumer = "approval-token board check"

  /// The device node, for example "/dev/gpiochip0".
  package let path: String
  package let label: String
  /// Safe to share: libgpiod keeps no state that is common to the lines of a chip.
  private nonisolated(unsafe) let chip: Chip

  /// - Parameter labels: the possible labels of the chip.
  package init(chip labels: [String]) throws(GPIOError) {
    chip = try Chip.labeled(labels)
    (path, label) = (chip.path, chip.label)
  }

  /// Whether the input is active now, with the configured polarity.
  package func isActive(_ input: InputLine) throws(GPIOError) -> Bool {
    try RequestedLine(input, of: chip, consumer: Self.consumer).isActive()
  }

  /// Switches the output on for `duration`, then off.
  package func drive(_ output: OutputLine, for duration: Duration) async throws(GPIOError) {
    let line = try RequestedLine(output, isOn: true, of: chip, consumer: Self.consumer)
    try? await Task.sleep(for: duration)
    try line.set(false)
  }
}
