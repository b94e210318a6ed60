// SPDX-License-Identifier: Apache-2.0
import CUSB
import Glibc

/// Watches the device nodes of USB (inotify(7)). In a network namespace of its own, a process hears nothing of udev,
/// by which libusb learns of new devices.
final class NodeWatch {
  private static let root = "/dev/bus/usb"

  /// Readable after a change.
  let descriptor: Int32

  /// - Returns: nil if inotify is not available.
  init?() {
    descriptor = approval_usb_new_inotify()
    guard descriptor >= 0 else { return nil }
    watchDirectories()
  }

  deinit { close(descriptor) }

  /// Reads the changes, and watches new buses.
  func drain() {
    var changes = [UInt8](repeating: 0, count: 4096)
    while read(descriptor, &changes, changes.count) > 0 {}
    watchDirectories()
  }

  private func watchDirectories() {
    guard approval_usb_watch_directory(descriptor, Self.root) >= 0, let directory = opendir(Self.root) else {
      // It appears with the first controller.
      for path in ["/dev", "/dev/bus"] { _ = approval_usb_watch_directory(descriptor, path) }
      return
    }
    defer { closedir(directory) }
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      guard name.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { continue }
      _ = approval_usb_watch_directory(descriptor, "\(Self.root)/\(name)")
    }
  }
}
