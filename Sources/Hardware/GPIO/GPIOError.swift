// SPDX-License-Identifier: Apache-2.0
/// The reason why a line cannot be used. The description names the remedy where there is one.
package enum GPIOError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The lines have not been opened yet.
  case notYetOpened
  /// No chip has one of the labels; `present` are the labels of the chips that could be opened, `unreadable` the device
  /// nodes of the others.
  case noChip(labels: [String], present: [String], unreadable: [String] = [])
  /// More than one chip has the label, so the intended one is ambiguous.
  case severalChips(label: String, paths: [String])
  case noLine(offset: Int, chip: String, count: Int)
  /// The line at this offset does not have the name in the board profile.
  case otherName(offset: Int, chip: String, expected: String, found: String)
  /// Another program or driver has requested the line; `consumer` is the name it gave.
  case busy(offset: Int, chip: String, consumer: String)
  /// The device node may not be opened; `group` is the group that owns it.
  case notPermitted(path: String, group: String)
  /// The chip was removed while its lines were in use.
  case gone(chip: String)
  /// More edges came than the kernel's queue holds. The lost edges are unknown.
  case edgesLost(offset: Int)
  /// Another call failed; `errno` as in errno(3).
  case failed(call: String, errno: Int32)

  package var description: String {
    switch self {
    case .notYetOpened: "the GPIO lines are not open yet"
    case .noChip(let labels, let present, let unreadable):
      "no GPIO chip has the label \(Self.list(labels)); "
        + (present.isEmpty ? "no GPIO chip is present" : "there are \(Self.list(present))")
        + (unreadable.isEmpty ? "" : ", and \(unreadable.joined(separator: ", ")), which cannot be opened")
    case .severalChips(let label, let paths): "several GPIO chips have the label \"\(label)\": \(Self.list(paths))"
    case .noLine(let offset, let chip, let count): "GPIO chip \(chip) has no line \(offset), its last is \(count - 1)"
    case .otherName(let offset, let chip, let expected, let found):
      "line \(offset) of GPIO chip \(chip) is called \"\(found)\", not \"\(expected)\""
    case .busy(let offset, let chip, let consumer):
      "line \(offset) of GPIO chip \(chip) is in use by \"\(consumer)\""
    case .notPermitted(let path, let group): "no permission for \(path), which belongs to the group \(group)"
    case .gone(let chip): "GPIO chip \(chip) is gone"
    case .edgesLost(let offset): "edges of GPIO line \(offset) were lost"
    case .failed(let call, let number): "\(call) failed: errno \(number)"
    }
  }

  private static func list(_ names: [String]) -> String { names.map { "\"\($0)\"" }.joined(separator: ", ") }
}
