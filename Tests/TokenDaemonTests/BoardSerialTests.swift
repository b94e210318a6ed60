// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

@testable import TokenDaemon

@Suite(.timeLimit(.minutes(5))) struct BoardSerialTests {
  private func serial(of content: String) throws -> String? {
    let path = NSTemporaryDirectory() + "serial-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: path) }
    try Data(content.utf8).write(to: URL(fileURLWithPath: path))
    return boardSerial(at: path)
  }

  @Test("The serial number ends at the zero byte of the device tree") func endsAtZeroByte() throws {
    #expect(try serial(of: "10000000abcdef01\0") == "10000000abcdef01")
    #expect(try serial(of: String(repeating: "A", count: 64)) == String(repeating: "A", count: 64))
  }

  @Test(
    "What no board is marked with is no serial number",
    arguments: ["", "\0", "a b", "1\u{1B}[m", "ä", "1\n", String(repeating: "1", count: 65)])
  func refusesOthers(content: String) throws { #expect(try serial(of: content) == nil) }

  @Test("A machine without a device tree has none") func withoutDeviceTree() {
    #expect(boardSerial(at: "/nonexistent/serial-number") == nil)
  }
}
