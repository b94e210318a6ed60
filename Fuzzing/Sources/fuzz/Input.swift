// SPDX-License-Identifier: Apache-2.0
import Glibc

/// An input whose first byte selects the kind of the rest: digits and letters in the seeds, for readability.
struct Input {
  let choice: Int
  var rest: ArraySlice<UInt8>

  /// - Parameter choices: the number of kinds.
  init(_ bytes: [UInt8], choices: Int) {
    choice = Int((bytes.first ?? 0) & 0x0F) % choices
    rest = bytes.dropFirst()
  }

  var bytes: [UInt8] { Array(rest) }
  var text: String { String(decoding: rest, as: UTF8.self) }

  mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

  /// Removes the lines up to and including the first empty line, or at most `limit` lines.
  /// - Returns: the removed lines without the empty one.
  mutating func lines(atMost limit: Int = .max) -> [String] {
    var lines: [String] = []
    while !rest.isEmpty, lines.count < limit {
      let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
      let line = String(decoding: rest[..<end], as: UTF8.self)
      rest = rest[end...].dropFirst()
      if line.isEmpty { break }
      lines.append(line)
    }
    return lines
  }
}

/// A property that a parser must have; a violation is a finding like a trap.
func require(_ condition: Bool, _ what: @autoclosure () -> String, file: StaticString = #file, line: UInt = #line) {
  if !condition { fatalError("violated: \(what())", file: file, line: line) }
}

/// The pieces in which a network might deliver `bytes`, determined by `seed`.
func pieces(of bytes: ArraySlice<UInt8>, seed: UInt8) -> [[UInt8]] {
  var pieces: [[UInt8]] = []
  var rest = bytes
  var step = Int(seed)
  while !rest.isEmpty {
    step = (step * 5 + 1) & 0xFF
    let count = 1 + step % 61
    pieces.append(Array(rest.prefix(count)))
    rest = rest.dropFirst(count)
  }
  return pieces
}

/// Runs `body` and waits for its end, because libFuzzer calls synchronously.
func wait(for body: @escaping @Sendable () async -> Void) {
  let done = Semaphore()
  Task.detached {
    await body()
    done.signal()
  }
  done.wait()
}

private final class Semaphore: @unchecked Sendable {
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(semaphore, 0, 0) }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  func signal() { sem_post(semaphore) }
  func wait() { while sem_wait(semaphore) != 0 {} }
}
