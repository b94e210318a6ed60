// SPDX-License-Identifier: Apache-2.0
import CMemcheck

/// Which bytes memcheck takes for secret. Every place in this program where something secret becomes public goes
/// through here, with its name.
enum Secrecy {
  static func hide(_ bytes: UnsafeRawBufferPointer) { memcheck_make_secret(bytes.baseAddress, bytes.count) }

  /// - Parameter name: as in docs/constant-time.md.
  static func reveal(_ name: StaticString, _ bytes: UnsafeRawBufferPointer) {
    counts["\(name)", default: 0] += memcheck_count_secret(bytes.baseAddress, bytes.count)
    memcheck_make_public(bytes.baseAddress, bytes.count)
  }

  /// Not inlined: what is revealed is the value that was returned, in memory, and not a step on the way to it.
  @inline(never)
  static func revealed<Value: BitwiseCopyable>(_ name: StaticString, _ value: Value) -> Value {
    var value = value
    withUnsafeMutableBytes(of: &value) { reveal(name, UnsafeRawBufferPointer($0)) }
    return value
  }

  /// How many secret bytes were revealed under each name. If one is zero, the secret did not get there, and that
  /// memcheck is content says nothing.
  nonisolated(unsafe) private(set) static var counts: [String: Int] = [:]
}
