// SPDX-License-Identifier: Apache-2.0
package import Secrets

/// Decodes the input reports of a boot keyboard (HID 1.11, appendix B.1) into keys. The usages of held keys are secret:
/// they are never used for a branch or as an index. Only the kind of a pressed key becomes public, after it is
/// computed.
///
/// A report has eight bytes: the modifiers, one reserved byte, then the usages (HID Usage Tables, page 0x07) of up to
/// six keys that are down, in any order, 0 for an unused slot. Modifiers are ignored. There is no key repeat: the host
/// would generate it, and this host does not.
package struct BootKeyboardDecoder: ~Copyable {
  package enum ReportError: Error, Equatable, Sendable {
    /// The report does not have exactly eight bytes. The value is its length.
    case length(Int)
  }

  package static let reportBytes = 8
  private static let slots = 6

  /// The usages of the keys that were down in the previous report.
  private var held = SecretBuffer(count: slots)
  /// The result of the last report: six key effects (`KeyEffect`), then six ASCII digits.
  private var found = SecretBuffer(count: 2 * slots)

  package init() {}

  /// Delivers each key that is down now and was up in the previous report to the sink, in the order of the report.
  package mutating func decode(_ report: UnsafeRawBufferPointer, into sink: some KeySink) throws(ReportError) {
    try classify(report)
    deliver(to: sink)
  }

  /// Forgets which keys were down. For use with another keypad.
  package mutating func reset() {
    held.wipe()
    found.wipe()
  }

  // A test that tracks secret bytes through the machine code runs code between these two functions: it declares the
  // kinds of keys public. They are not inlined, so that the test runs the same machine code as `decode`.

  @inline(never)
  package mutating func classify(_ report: UnsafeRawBufferPointer) throws(ReportError) {
    guard report.count == Self.reportBytes else { throw .length(report.count) }
    let now = UnsafeRawBufferPointer(rebasing: report[2...])
    held.withMutableBytes { held in
      found.withMutableBytes { found in
        // The report is invalid if more keys are down than the keypad can distinguish, or after a failure (usages 1 to
        // 3, in every slot; one is enough here). The keys that are down are then those of the previous report.
        var isVoid: UInt8 = 0
        for slot in 0..<Self.slots { isVoid |= mask(now[slot], isIn: 1...3) }
        for slot in 0..<Self.slots {
          var isNew = ~isVoid & ~mask(now[slot], is: 0)
          for before in held { isNew &= ~mask(now[slot], is: before) }
          for other in 0..<slot { isNew &= ~mask(now[slot], is: now[other]) }
          found[slot] = KeyEffect.code(of: now[slot]) & isNew
          found[Self.slots + slot] = digit(of: now[slot])
        }
        for slot in 0..<Self.slots { held[slot] = isVoid & held[slot] | ~isVoid & now[slot] }
      }
    }
  }

  /// The key effects that `classify` computed, one byte for each slot.
  package mutating func withKinds(_ body: (UnsafeMutableRawBufferPointer) -> Void) {
    found.withMutableBytes { body(UnsafeMutableRawBufferPointer(rebasing: $0[..<Self.slots])) }
  }

  @inline(never)
  package mutating func deliver(to sink: some KeySink) {
    for slot in 0..<Self.slots {
      switch KeyEffect(code: found.withBytes { $0[slot] }) {
      case .nothing: break
      case .key(let key): sink.press(key)
      case .digits(let count):
        let digit = TypedDigit(found.withBytes { $0[Self.slots + slot] })
        for _ in 0..<count { sink.press(.digit(digit)) }
      }
    }
    found.wipe()
  }
}
