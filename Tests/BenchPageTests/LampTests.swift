// SPDX-License-Identifier: Apache-2.0
import Foundation
import FrontPanel
import Testing

@Suite(.timeLimit(.minutes(1))) struct LampTests {
  @Test("The page has a lamp for each color of the LED", arguments: LEDColor.allCases) func colors(color: LEDColor)
    throws
  {
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
    let script = root.appending(path: "Sources/Programs/BenchPage/Page/token.js")
    let text = try String(contentsOf: script, encoding: .utf8)
    let table = try #require(text.range(of: "export const lamps = {"))
    let lamps = text[table.upperBound...].prefix { $0 != "}" }
    let name = color.rawValue.contains(" ") ? "\"\(color.rawValue)\"" : color.rawValue
    #expect(lamps.contains(" \(name): \"#"), "\(lamps)")
  }
}
