// SPDX-License-Identifier: Apache-2.0
import Glibc
import Synchronization
import Testing
import Threads

@Suite("The unused stack of a thread", .timeLimit(.minutes(1))) struct UnusedStackTests {
  /// Fills the stack with ones.
  /// - Returns: the lowest address filled.
  @inline(never) private static func fill(depth: Int) -> UInt {
    withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 16) { bytes in
      for index in bytes.indices { bytes[index] = 0xFF }
      return depth == 0 ? UInt(bitPattern: bytes.baseAddress) : fill(depth: depth - 1)
    }
  }

  @inline(never) private static func sum(at address: UInt) -> Int {
    let bytes = UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: address), count: 1024)
    return bytes.reduce(0) { $0 + Int($1) }
  }

  @Test("What a call left on the stack is gone, and the thread goes on") func discarded() {
    let sums = Mutex<[(before: Int, after: Int)]>([])
    LoopThread(named: "stack") {
      let stack = UnusedStack()
      for _ in 1...2 {
        let lowest = Self.fill(depth: 200)
        let before = Self.sum(at: lowest)
        stack.discard()
        let after = Self.sum(at: lowest)
        sums.withLock { $0.append((before, after)) }
      }
    }.join()
    let results = sums.withLock { $0 }
    #expect(results.count == 2)
    for (before, after) in results {
      // The deepest call itself may have overwritten a part.
      #expect(before > 512 * 255)
      #expect(after == 0)
    }
  }
}
