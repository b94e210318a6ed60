public import Secrets

/// Turns the input reports of a boot keyboard (HID 1.11, appendix B.1) into keys. Which keys are held is never branched
/// on and never used as an index; of what was pressed only the kind becomes known here, and only once it is computed.
///
/// A report has eight bytes: modifiers, one reserved, then the usages (HID Usage Tables, page 0x07) of up to six keys
/// that are down, in any order, 0 where there is none. Modifiers mean nothing on a keypad. Keys do not repeat: that is
/// the host's business, and this host does not.
public struct BootKeyboardDecoder: ~Copyable {
  public enum Fault: Error, Equatable, Sendable {
    /// A boot report has exactly eight bytes, not so many.
    case length(Int)
  }

  public static let reportBytes = 8
  private static let slots = 6

  /// Usages of the keys that were down in the report before.
  private var held = SecretBuffer(count: slots)
  /// What the last report brought: six times what the key does (`KeyEffect`), then six ASCII digits.
  private var found = SecretBuffer(count: 2 * slots)

  public init() {}

  /// Hands each key that has gone down since the report before to the sink, in the order of the report.
  public mutating func decode(_ report: UnsafeRawBufferPointer, into sink: some KeySink) throws(Fault) {
    try classify(report)
    deliver(to: sink)
  }

  /// Forgets which keys were down, for another keypad.
  public mutating func reset() {
    held.wipe()
    found.wipe()
  }

  // A test that follows secret bytes through the machine code stops between these two, to say that the kinds of keys
  // are no longer secret. Not inlined, so that what it follows is what `decode` runs.

  @inline(never)
  package mutating func classify(_ report: UnsafeRawBufferPointer) throws(Fault) {
    guard report.count == Self.reportBytes else { throw .length(report.count) }
    let now = UnsafeRawBufferPointer(rebasing: report[2...])
    held.withMutableBytes { held in
      found.withMutableBytes { found in
        // More keys than the keypad can tell apart, or a failure (usages 1 to 3, in every slot; one is enough here): the
        // report says nothing, and what is down is what was down before.
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

  /// What `classify` found out about kinds, one byte for each key.
  package mutating func withKinds(_ body: (UnsafeMutableRawBufferPointer) -> Void) {
    found.withMutableBytes { body(UnsafeMutableRawBufferPointer(rebasing: $0[..<Self.slots])) }
  }

  @inline(never)
  package mutating func deliver(to sink: some KeySink) {
    for slot in 0..<Self.slots {
      let effect = KeyEffect(code: found.withBytes { $0[slot] })
      for _ in 0..<effect.count {
        sink.press(effect.kind, digit: found.withBytes { $0[Self.slots + slot] })
      }
    }
    found.wipe()
  }
}
