// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Storage that is slow for one program: a library that is preloaded into it delays its waits for storage and counts
/// them.
struct SlowStorage {
  /// The variables for the program.
  let environment: [String: String]
  private let counter: String

  /// The library, compiled by the C compiler that builds the programs, too.
  static func library(on stage: Stage) throws -> String {
    let source = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "slow-storage/slow-storage.c").path
    let library = "\(stage.directory)/slow-storage.so"
    let arguments = ["-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"]
    _ = try Child.run("cc", arguments, log: "\(stage.directory)/cc.log")
    return library
  }

  /// - Parameter delay: seconds of each wait.
  init(_ library: String, named name: String, delay: Double, on stage: Stage) throws {
    counter = "\(stage.directory)/\(name).syncs"
    // In a directory on a disk, but never waited for: the counter adds nothing to what is measured.
    try Data(count: MemoryLayout<UInt64>.size).write(to: URL(filePath: counter))
    environment = [
      "LD_PRELOAD": library, "BENCH_SYNC_COUNTER": counter, "BENCH_SYNC_MICROSECONDS": String(Int(delay * 1e6)),
    ]
  }

  /// The number of waits for storage so far.
  func syncs() throws -> Int {
    let bytes = try Data(contentsOf: URL(filePath: counter))
    guard bytes.count >= 8 else { throw BenchError("\(counter) is too short") }
    return Int(bytes.reversed().suffix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
  }
}
