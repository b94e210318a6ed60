// SPDX-License-Identifier: Apache-2.0
import Glibc
import MobileAuth
import Secrets

/// Reads and writes a small secret file without copying the secret to ordinary memory.
enum SecretFile {
  /// - Parameter complaint: returns what is wrong with a regular file of this status and size in bytes; nil for
  ///   nothing.
  static func read(
    _ path: String, unless complaint: (stat, Int) -> String?
  ) throws(StateStoreError) -> SecretBytes {
    // O_NONBLOCK: opening a FIFO must not block the start.
    let descriptor = Glibc.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { throw systemFault("open \(path)") }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw systemFault("fstat \(path)") }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .io(call: path, reason: "not a regular file") }
    let count = Int(status.st_size)
    if let complaint = complaint(status, count) { throw .io(call: path, reason: complaint) }
    return try SecretBytes(count: count) { (target: UnsafeMutableRawBufferPointer) throws(StateStoreError) in
      var done = 0
      while done < count {
        let got = Glibc.read(descriptor, target.baseAddress! + done, count - done)
        if got < 0, errno == EINTR { continue }
        guard got > 0 else { throw got < 0 ? systemFault("read \(path)") : .io(call: path, reason: "is being changed") }
        done += got
      }
    }
  }

  /// Creates a file of mode 0400 and waits until its contents are durable; its name is durable only after
  /// `StateDirectory.synchronize`.
  static func write(_ secret: SecretBytes, to path: String) throws(StateStoreError) {
    let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o400)
    guard descriptor >= 0 else { throw systemFault("create \(path)") }
    defer { close(descriptor) }
    try secret.withExposedSecret { (bytes: UnsafeRawBufferPointer) throws(StateStoreError) in
      var done = 0
      while done < bytes.count {
        let put = Glibc.write(descriptor, bytes.baseAddress! + done, bytes.count - done)
        if put < 0, errno == EINTR { continue }
        guard put > 0 else { throw systemFault("write \(path)") }
        done += put
      }
    }
    guard fsync(descriptor) == 0 else { throw systemFault("fsync \(path)") }
  }
}
