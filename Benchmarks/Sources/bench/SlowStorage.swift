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
    try Data(count: 2 * MemoryLayout<UInt64>.size).write(to: URL(filePath: counter))
    environment = [
      "LD_PRELOAD": library, "BENCH_SYNC_COUNTER": counter, "BENCH_SYNC_MICROSECONDS": String(Int(delay * 1e6)),
    ]
  }

  /// The numbers of waits for storage so far.
  struct Waits {
    let begun: Int
    let ended: Int
  }

  func waits() throws -> Waits {
    let bytes = [UInt8](try Data(contentsOf: URL(filePath: counter)))
    guard bytes.count >= 16 else { throw BenchError("\(counter) is too short") }
    func number(at offset: Int) -> Int {
      bytes[offset..<offset + 8].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
    return Waits(begun: number(at: 0), ended: number(at: 8))
  }
}
