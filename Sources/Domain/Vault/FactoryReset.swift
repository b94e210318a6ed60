// SPDX-License-Identifier: Apache-2.0
import Glibc
package import MobileAuth

/// The removal of everything that this token stores in its state directory.
///
/// A reset begins with a durable marker file, and ends with its removal. A reset that a power loss interrupts is
/// finished by the next start of the service. In between, no vault may be opened.
package struct FactoryReset: Sendable {
  /// The name of the marker. The unit that removes a systemd credential waits for it.
  package static let markerName = "factory-reset"
  private let directory: String

  package init(directory: String) { self.directory = directory }

  private var marker: String { "\(directory)/\(Self.markerName)" }

  /// Whether a reset has begun and is not finished.
  package var hasBegun: Bool { get throws(StateStoreError) { try StateDirectory.exists(marker) } }

  /// Begins the reset. Durable when it returns. After an error, no reset has begun.
  package func begin() throws(StateStoreError) {
    do { try putMarker() } catch {
      unlink(marker)
      try? StateDirectory.synchronize(directory)
      throw error
    }
  }

  private func putMarker() throws(StateStoreError) {
    let descriptor = open(marker, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw systemFault("create \(marker)") }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw systemFault("fsync \(marker)") }
    try StateDirectory.synchronize(directory)
  }

  /// Overwrites and removes the device secret, then the vault, then the marker. Other files stay. No other process may
  /// use the vault. A secret that is a systemd credential is not in this directory, and stays.
  package func finish() throws(StateStoreError) {
    let names = try names()
    // Without the secret, what is left of the vault cannot be read.
    for part in [DeviceSecret.fileName, Vault.fileName] {
      for name in names where name.hasPrefix(part) { try erase("\(directory)/\(name)") }
      try StateDirectory.synchronize(directory)
    }
    guard unlink(marker) == 0 || errno == ENOENT else { throw systemFault("unlink \(marker)") }
    try StateDirectory.synchronize(directory)
  }

  private func names() throws(StateStoreError) -> [String] {
    guard let stream = opendir(directory) else { throw systemFault("opendir \(directory)") }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else { break }
      names.append(
        withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) { String(cString: $0) }
        })
    }
    // A directory that cannot be read to its end must not look like an empty one.
    guard errno == 0 else { throw systemFault("readdir \(directory)") }
    return names.sorted()
  }

  /// Overwrites a regular file with zeros in place and removes it. The storage may keep older copies of its blocks.
  private func erase(_ path: String) throws(StateStoreError) {
    var status = stat()
    guard lstat(path, &status) == 0 else { throw systemFault("lstat \(path)") }
    if status.st_mode & S_IFMT == S_IFREG { try overwrite(path, Int(status.st_size)) }
    guard unlink(path) == 0 else { throw systemFault("unlink \(path)") }
  }

  private func overwrite(_ path: String, _ size: Int) throws(StateStoreError) {
    // The file of the secret is not writable for its owner.
    guard chmod(path, 0o600) == 0 else { throw systemFault("chmod \(path)") }
    let descriptor = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { throw systemFault("open \(path)") }
    defer { close(descriptor) }
    let zeros = [UInt8](repeating: 0, count: 65_536)
    var left = size
    while left > 0 {
      let put = write(descriptor, zeros, min(left, zeros.count))
      if put < 0, errno == EINTR { continue }
      guard put > 0 else { throw systemFault("write \(path)") }
      left -= put
    }
    guard fsync(descriptor) == 0 else { throw systemFault("fsync \(path)") }
  }
}
