// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A file on the storage that the token uses.
struct DurableFile {
  private let file: FileHandle
  /// What the vault writes for one decision is longer.
  private let page = Data(repeating: 1, count: 4096)

  init(on stage: Stage) throws {
    let path = "\(stage.directory)/durable"
    // Its size is constant, as that of the vault's log after a checkpoint.
    try page.write(to: URL(filePath: path))
    guard let file = FileHandle(forUpdatingAtPath: path) else { throw BenchError("cannot open \(path)") }
    self.file = file
  }

  /// Writes a page, and waits until it is on storage.
  func write() throws {
    try file.seek(toOffset: 0)
    try file.write(contentsOf: page)
    guard fdatasync(file.fileDescriptor) == 0 else { throw BenchError("fdatasync failed") }
  }
}
