// SPDX-License-Identifier: Apache-2.0
/// The digits of an entry in progress, in locked memory. The position of a digit depends on the number of digits, which
/// is not secret, and never on a digit.
package struct TypedDigits: ~Copyable, Sendable {
  private var buffer = SecretBuffer(count: PIN.longest)
  /// The number of digits.
  package private(set) var count = 0

  package init() {}

  /// Copies the digit. Ignored if there are already `PIN.longest` digits.
  package mutating func append(_ digit: TypedDigit) {
    guard count < PIN.longest else { return }
    digit.withExposedSecret { put($0, at: count) }
    count += 1
  }

  package mutating func deleteLast() {
    guard count > 0 else { return }
    count -= 1
    put(0, at: count)
  }

  package mutating func clear() {
    buffer.wipe()
    count = 0
  }

  /// The entry, if exactly `wanted` digits were typed; otherwise nil. The digits also remain here until they are
  /// cleared.
  package func entry(count wanted: Int) -> EnteredDigits? { entry(within: wanted...wanted) }

  /// The entry, if the number of typed digits is one of `wanted`; otherwise nil.
  package func entry(within wanted: ClosedRange<Int>) -> EnteredDigits? {
    guard wanted.contains(count), count > 0 else { return nil }
    return buffer.withBytes { bytes in
      let typed = UnsafeRawBufferPointer(rebasing: bytes[..<count])
      return EnteredDigits(SecretBytes(count: count) { target in target.copyMemory(from: typed) })
    }
  }

  private mutating func put(_ byte: UInt8, at position: Int) { buffer.withMutableBytes { $0[position] = byte } }
}
