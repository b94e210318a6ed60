// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import Testing

@Suite(.timeLimit(.minutes(5))) struct ProtocolVersionsTests {
  @Test(
    "An announcement is two numbers from 1 to 9999, the older one first",
    arguments: [("1-1", 1, 1), ("1-2", 1, 2), ("3-5", 3, 5), ("9999-9999", 9999, 9999)])
  func announcement(text: String, oldest: Int, newest: Int) throws {
    let versions = try #require(ProtocolVersions(text))
    #expect(versions.oldest == oldest && versions.newest == newest && versions.text == text)
    #expect(try JSON.decode([ProtocolVersions].self, from: JSON.encode([versions])) == [versions])
  }

  @Test(
    "A malformed announcement is rejected",
    arguments: [
      "", "-", "1", "1-", "-1", "0-1", "2-1", "1-2-3", "01-2", "1-02", "1-10000", "99999999999999999999-1", "1 -2",
      "+1-2", "1-٢", "1–2", "1-2\n", String(repeating: "1", count: 1000),
    ])
  func malformedAnnouncement(text: String) {
    #expect(ProtocolVersions(text) == nil)
    #expect(throws: WireError.self) { try JSON.decode([ProtocolVersions].self, from: JSON.encode([text])) }
  }

  @Test(
    "Device and server need a common version; the one with the older versions must be updated",
    arguments: [
      ("1-2", "1-2", nil), ("1-2", "2-3", nil), ("2-3", "1-2", nil), (nil, "1-2", nil), ("1-2", nil, nil),
      (nil, nil, nil),
      (
        "1-2", "3-5",
        "the token supports versions 1 to 2 of the device protocol, "
          + "the token server versions 3 to 5: update the token"
      ),
      (
        "3-5", "1-2",
        "the token supports versions 3 to 5 of the device protocol, "
          + "the token server versions 1 to 2: update the token server"
      ),
      (nil, "2-2", "the token supports version 1 of the device protocol, the token server version 2: update the token"),
      (
        "2-3", nil,
        "the token supports versions 2 to 3 of the device protocol, "
          + "the token server version 1: update the token server"
      ),
    ])
  func commonVersion(device: String?, server: String?, sentence: String?) {
    let mismatch = ProtocolMismatchError(
      device: device.flatMap { ProtocolVersions($0) }, server: server.flatMap { ProtocolVersions($0) })
    #expect(mismatch?.description == sentence)
  }

  /// Fails if a change drops the version of devices and servers that announce none.
  @Test("The supported versions include version 1") func version1IsSupported() {
    #expect(ProtocolMismatchError(device: .supported, server: .unannounced) == nil)
    #expect(ProtocolMismatchError(device: .unannounced, server: .supported) == nil)
  }
}
