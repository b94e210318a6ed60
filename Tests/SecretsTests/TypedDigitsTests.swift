// SPDX-License-Identifier: Apache-2.0
import Secrets
import Testing

@Suite("Typed digits", .timeLimit(.minutes(5))) struct TypedDigitsTests {
  private func digits(_ typed: borrowing TypedDigits, _ count: Int) -> String? {
    typed.entry(count: count).map { $0.bytes.withExposedSecret { String(decoding: $0, as: UTF8.self) } }
  }

  private func typing(_ digits: String) -> TypedDigits {
    var typed = TypedDigits()
    for digit in digits.utf8 { typed.append(TypedDigit(digit)) }
    return typed
  }

  @Test("Become an entry only with the required number") func becomeAnEntryOnlyWithTheRequiredNumber() {
    let typed = typing("13579")
    #expect(digits(typed, 5) == "13579")
    #expect(digits(typed, 4) == nil)
    #expect(digits(typed, 6) == nil)
    #expect(digits(TypedDigits(), 0) == nil)
  }

  @Test("Are deleted one by one, and all together") func areDeletedOneByOneAndAllTogether() {
    var typed = typing("1234")
    typed.deleteLast()
    typed.append(TypedDigit(0x39))
    #expect(digits(typed, 4) == "1239")
    typed.clear()
    typed.deleteLast()
    #expect(typed.count == 0)
    typed.append(TypedDigit(0x37))
    #expect(digits(typed, 1) == "7")
  }

  @Test("Are limited to the longest PIN") func areLimitedToTheLongestPIN() {
    let long = String(repeating: "12345678", count: 4)
    let typed = typing(long + "9")
    #expect(typed.count == PIN.longest)
    #expect(digits(typed, 32) == long)
  }

  @Test("Do not change an entry that was made of them, nor its PIN") func doNotChangeAnEntryThatWasMadeOfThem() {
    var typed = typing("24680")
    let entry = typed.entry(count: 5)
    typed.clear()
    #expect(entry == typing("24680").entry(count: 5))
    #expect(entry != typing("24681").entry(count: 5))
    #expect(entry.map { PIN($0) } == PIN(digits: SecretBytes(copying: Array("24680".utf8))))
  }
}

@Suite("A typed digit", .timeLimit(.minutes(5))) struct TypedDigitTests {
  @Test("Is the digit that was typed", arguments: UInt8(0x30)...0x39) func isTheDigitThatWasTyped(ascii: UInt8) {
    let digit = TypedDigit(ascii)
    #expect(digit.withExposedSecret { $0 } == ascii)
    #expect(digit == TypedDigit(ascii) && digit != TypedDigit(ascii ^ 1))
  }

  @Test("Two key presses are equal if their keys and digits are") func twoKeyPressesAreEqual() {
    let keys: [KeyPress] = [
      .digit(TypedDigit(0x31)), .digit(TypedDigit(0x32)), .enter, .delete, .clear, .escape, .other,
    ]
    for (one, key) in keys.enumerated() {
      for (other, otherKey) in keys.enumerated() { #expect((key == otherKey) == (one == other)) }
    }
  }
}

@Suite("A secret buffer", .timeLimit(.minutes(5))) struct SecretBufferTests {
  @Test("Is zero at first, keeps what is written, and is zero again when wiped", arguments: [0, 1, 4_096, 5_000])
  func isZeroAtFirstKeepsWhatIsWrittenAndIsZeroAgainWhenWiped(count: Int) {
    var buffer = SecretBuffer(count: count)
    #expect(buffer.withBytes { $0.count == count && $0.allSatisfy { $0 == 0 } })
    buffer.withMutableBytes { for index in $0.indices { $0[index] = 0x5A } }
    #expect(buffer.withBytes { $0.allSatisfy { $0 == 0x5A } })
    buffer.wipe()
    #expect(buffer.withBytes { $0.count == count && $0.allSatisfy { $0 == 0 } })
  }
}
