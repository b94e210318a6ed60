// SPDX-License-Identifier: Apache-2.0
import Boards
import Glibc
import Testing

/// `boards/README.md` documents exactly the keys that the parser accepts.
@Suite("The documentation of profiles", .timeLimit(.minutes(5))) struct DocumentationTests {
  private static let mono = "led.colors = \"mono\"\nled.light.line = 2\n"
  private static let gpio = """
    name = "b"
    description = "d"
    kind = "gpio"
    gpio.chips = ["c"]
    button.line = 0
    keypad.kind = "usb"

    """
  /// The error for an unknown key lists the known keys of its table. These profiles have one unknown key in each table.
  private static let profiles = [
    gpio + mono, gpio + mono + "gpio.zz = 1", gpio + mono + "button.zz = 1", gpio + mono + "led.zz = 1",
    gpio + mono + "gestures.zz = 1", gpio + mono + "keypad.zz = 1", gpio + mono + "zz = 1",
    gpio + "led.zz = 1\nled.red.line = 1\nled.green.line = 2\nled.blue.line = 3",
  ]

  private func knownKeys() -> Set<String> {
    var keys: Set<String> = []
    for toml in Self.profiles {
      do { _ = try BoardProfile(parsing: toml, file: "f") } catch {
        let quotes = error.why.split(separator: "\"", omittingEmptySubsequences: false)
        let path = quotes[1].dropLast(2)
        for key in error.why.split(separator: "known here: ")[1].split(separator: ", ") { keys.insert("\(path)\(key)") }
      }
    }
    return keys
  }

  /// The first column of the table of keys.
  private func documentedKeys() throws -> Set<String> {
    let readme = try #require(read("boards/README.md"))
    let rows = readme.split(separator: "\n").drop { !$0.hasPrefix("| key |") }.dropFirst(2).prefix { $0.hasPrefix("|") }
    let cells = rows.map { $0.split(separator: "|")[0] }
    return Set(
      cells.flatMap { cell in
        cell.split(separator: "`", omittingEmptySubsequences: false).enumerated().filter { $0.offset % 2 == 1 }
          .map { String($0.element) }
      })
  }

  private func read(_ file: String) -> String? {
    guard let stream = fopen(file, "re") else { return nil }
    defer { fclose(stream) }
    var text = [UInt8](repeating: 0, count: 65_536)
    let count = fread(&text, 1, text.count, stream)
    return String(decoding: text[..<count], as: UTF8.self)
  }

  @Test("Names every key, and no other") func namesEveryKeyAndNoOther() throws {
    let documented = try documentedKeys()
    // A table whose keys are listed need not be listed itself.
    let known = knownKeys().filter { key in documented.contains(key) || !documented.contains { $0.hasPrefix(key + ".") }
    }
    #expect(known.count > 20)
    #expect(known.subtracting(documented) == [])
    #expect(documented.subtracting(known) == [])
  }
}
