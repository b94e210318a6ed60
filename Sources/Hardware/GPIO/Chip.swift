// SPDX-License-Identifier: Apache-2.0
import CGPIOD
import DeviceNodes
import Glibc

/// A GPIO chip as the kernel describes it.
package struct ChipDescription: Sendable, Equatable {
  package struct Line: Sendable, Equatable {
    package let offset: Int
    /// The line's name; empty if the device tree gives none.
    package let name: String
    /// The name of the program or driver that has requested the line; nil if the line is free.
    package let consumer: String?
    package let isOutput: Bool
  }

  package let path: String
  package let label: String
  package let lines: [Line]
}

/// An open chip. Closed when its last reference is released.
final class Chip {
  let path: String
  let label: String
  let lineCount: Int
  let handle: OpaquePointer
  /// The device nodes that could not be opened when this chip was found: they are other chips.
  private(set) var unreadable: [String] = []

  init(path: String) throws(GPIOError) {
    guard let handle = gpiod_chip_open(path) else { throw Self.failure(opening: path) }
    var label = [CChar](repeating: 0, count: Int(APPROVAL_GPIO_NAME_SIZE))
    let count = approval_gpio_describe_chip(handle, &label)
    guard count >= 0 else {
      gpiod_chip_close(handle)
      throw .failed(call: "describing \(path)", errno: errno)
    }
    self.path = path
    self.handle = handle
    self.label = label.text
    lineCount = Int(count)
  }

  deinit { gpiod_chip_close(handle) }

  /// Opens the only chip that has one of the labels. The number in a device node's name does not identify a chip: it
  /// depends on the kernel's version and on other plugged-in devices.
  static func labeled(_ labels: [String]) throws(GPIOError) -> Chip {
    var found: [Chip] = []
    var present: [String] = []
    var obstacles: [(path: String, error: GPIOError)] = []
    for path in deviceNodes() {
      do throws(GPIOError) {
        let chip = try Chip(path: path)
        present.append(chip.label)
        if labels.contains(chip.label) { found.append(chip) }
      } catch {
        obstacles.append((path, error))
      }
    }
    if found.count > 1 { throw .severalChips(label: found[0].label, paths: found.map(\.path)) }
    guard let chip = found.first else { throw missing(labels, present: present, obstacles) }
    chip.unreadable = obstacles.map { $0.path }
    return chip
  }

  /// The error if no chip has one of the labels. That of a chip which cannot be opened, only if none can: it may have
  /// nothing to do with the one that is missing.
  /// - Parameter present: the labels of the chips that could be opened.
  static func missing(
    _ labels: [String], present: [String], _ obstacles: [(path: String, error: GPIOError)]
  ) -> GPIOError {
    if present.isEmpty, let obstacle = obstacles.first { return obstacle.error }
    return .noChip(labels: labels, present: present, unreadable: obstacles.map { $0.path })
  }

  func line(_ offset: Int) throws(GPIOError) -> ChipDescription.Line {
    guard (0..<lineCount).contains(offset) else { throw .noLine(offset: offset, chip: label, count: lineCount) }
    var info = approval_gpio_line_info()
    guard approval_gpio_describe_line(handle, UInt32(offset), &info) == 0 else {
      throw .failed(call: "describing line \(offset) of \(path)", errno: errno)
    }
    let consumer = withUnsafeBytes(of: info.consumer) { $0.text }
    return ChipDescription.Line(
      offset: offset, name: withUnsafeBytes(of: info.name) { $0.text },
      consumer: info.is_used ? consumer : nil, isOutput: info.is_output)
  }

  /// The paths of all GPIO device nodes. Symbolic links, which some kernels create for old numbers, are left out.
  static func deviceNodes() -> [String] {
    guard let directory = opendir("/dev") else { return [] }
    defer { closedir(directory) }
    var nodes: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { $0.text }
      if name.hasPrefix("gpiochip"), entry.pointee.d_type != DT_LNK { nodes.append("/dev/\(name)") }
    }
    return nodes.sorted()
  }

  private static func failure(opening path: String) -> GPIOError {
    let number = errno
    guard number == EACCES || number == EPERM, let group = groupName(ofNode: path) else {
      return .failed(call: "opening \(path)", errno: number)
    }
    return .notPermitted(path: path, group: group)
  }
}

/// Describes every chip with all its lines, or gives the error of a chip that cannot be opened.
package func describeChips() -> [Result<ChipDescription, GPIOError>] {
  Chip.deviceNodes().map { path in
    Result { () throws(GPIOError) in
      let chip = try Chip(path: path)
      var lines: [ChipDescription.Line] = []
      for offset in 0..<chip.lineCount { lines.append(try chip.line(offset)) }
      return ChipDescription(path: path, label: chip.label, lines: lines)
    }
  }
}

extension UnsafeRawBufferPointer {
  /// The text up to the first zero byte.
  fileprivate var text: String { String(decoding: prefix { $0 != 0 }, as: UTF8.self) }
}

extension [CChar] {
  fileprivate var text: String { withUnsafeBytes { $0.text } }
}
