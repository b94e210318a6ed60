// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import USBKeypad

@Suite(.timeLimit(.minutes(5))) struct GroupNameTests {
  /// The name is copied out of the buffer of the call while the buffer exists; later it would be freed memory.
  @Test("A group has its name, or its number") func nameOrNumber() {
    #expect(groupName(of: 0) == "root")
    #expect(groupName(of: 4_000_000_123) == "4000000123")
  }
}
