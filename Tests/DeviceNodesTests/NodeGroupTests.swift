// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import DeviceNodes

@Suite(.timeLimit(.minutes(5))) struct NodeGroupTests {
  /// The name is copied out of the buffer of the call while the buffer exists; later it would be freed memory.
  @Test("A group has its name, or its number") func nameOrNumber() {
    #expect(groupName(of: 0) == "root")
    #expect(groupName(of: 4_000_000_123) == "4000000123")
  }

  @Test("A node has its group, and a missing one has none") func node() {
    #expect(groupName(ofNode: "/dev/null") == "root")
    #expect(groupName(ofNode: "/dev/no-such-node") == nil)
  }
}
