// SPDX-License-Identifier: Apache-2.0
import CGPIOD
import Glibc

/// A requested line. It is released with its last reference and keeps the chip open until then. Inputs are used only on
/// the thread of their bank, outputs only with the bank's lock held; libgpiod keeps no state that is common to the
/// lines.
final class RequestedLine: @unchecked Sendable {
  let offset: Int
  private let chip: Chip
  private let handle: OpaquePointer

  init(_ input: InputLine, of chip: Chip, consumer: String) throws(GPIOError) {
    let bias: approval_gpio_bias =
      switch input.bias {
      case .asIs: approval_gpio_bias_as_is
      case .disabled: approval_gpio_bias_disabled
      case .pullUp: approval_gpio_bias_pull_up
      case .pullDown: approval_gpio_bias_pull_down
      }
    handle = try Self.request(input.offset, named: input.name, of: chip) {
      approval_gpio_request_input(chip.handle, UInt32(input.offset), consumer, input.isActiveLow, bias)
    }
    self.chip = chip
    offset = input.offset
    // Non-blocking, so that draining the queue ends instead of waiting for the next edge.
    guard approval_gpio_set_nonblocking(descriptor) == 0 else {
      throw .failed(call: "fcntl of line \(input.offset)", errno: errno)
    }
  }

  init(_ output: OutputLine, isOn: Bool, of chip: Chip, consumer: String) throws(GPIOError) {
    handle = try Self.request(output.offset, named: output.name, of: chip) {
      approval_gpio_request_output(chip.handle, UInt32(output.offset), consumer, output.isActiveLow, isOn)
    }
    self.chip = chip
    offset = output.offset
  }

  deinit { approval_gpio_release(handle) }

  /// Readable when an edge is waiting. For inputs only.
  var descriptor: Int32 { approval_gpio_event_descriptor(handle) }

  func isActive() throws(GPIOError) -> Bool {
    let value = approval_gpio_value(handle, UInt32(offset))
    guard value >= 0 else { throw failure("reading") }
    return value == 1
  }

  func set(_ isOn: Bool) throws(GPIOError) {
    guard approval_gpio_set_value(handle, UInt32(offset), isOn) == 0 else { throw failure("setting") }
  }

  /// The next waiting edge; nil if there is none.
  func nextEdge() throws(GPIOError) -> approval_gpio_edge? {
    var edge = approval_gpio_edge()
    while approval_gpio_read_edge(handle, &edge) != 0 {
      switch errno {
      case EINTR: continue
      case EAGAIN: return nil
      default: throw failure("reading edges of")
      }
    }
    return edge
  }

  private func failure(_ call: String) -> GPIOError {
    errno == ENODEV ? .gone(chip: chip.label) : .failed(call: "\(call) line \(offset) of \(chip.label)", errno: errno)
  }

  private static func request(
    _ offset: Int, named name: String?, of chip: Chip, by call: () -> OpaquePointer?
  ) throws(GPIOError) -> OpaquePointer {
    let line = try chip.line(offset)
    if let name, line.name != name {
      throw .otherName(offset: offset, chip: chip.label, expected: name, found: line.name)
    }
    if let handle = call() { return handle }
    let number = errno
    guard number == EBUSY else { throw .failed(call: "requesting line \(offset) of \(chip.label)", errno: number) }
    throw .busy(offset: offset, chip: chip.label, consumer: try chip.line(offset).consumer ?? "")
  }
}
