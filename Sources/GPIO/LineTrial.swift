/// Asks for the lines of a chip one by one, to say of each what is wrong with it. For a look at a board, not for service:
/// it does not wait for what is away.
public final class LineTrial: Sendable {
  /// What others see as the user of a line meanwhile.
  private static let consumer = "approval-token board check"

  /// The device node, as "/dev/gpiochip0".
  public let path: String
  public let label: String
  /// Nothing is shared between the lines that are requested of it.
  private nonisolated(unsafe) let chip: Chip

  /// - Parameter labels: what the chip may be called.
  public init(chip labels: [String]) throws(GPIOError) {
    chip = try Chip.labelled(labels)
    (path, label) = (chip.path, chip.label)
  }

  /// Whether the input is active now, as its wiring has it.
  public func isActive(_ input: InputLine) throws(GPIOError) -> Bool {
    try RequestedLine(input, of: chip, consumer: Self.consumer).isActive()
  }

  /// Switches the output on for so long, and off.
  public func drive(_ output: OutputLine, for duration: Duration) async throws(GPIOError) {
    let line = try RequestedLine(output, isOn: true, of: chip, consumer: Self.consumer)
    try? await Task.sleep(for: duration)
    try line.set(false)
  }
}
