// SPDX-License-Identifier: Apache-2.0
import JSONValues

/// JSON texts: values of any form, with limits, and messages whose members are known.
func readJSONText(_ bytes: [UInt8]) {
  let input = Input(bytes, choices: 3)
  switch input.choice {
  case 0: readValue(input.bytes)
  case 1: readBounded(input.bytes)
  default: readMessage(input.bytes)
  }
}

private func readValue(_ text: [UInt8]) {
  guard let value = try? JSONSyntax.parse(text) else { return }
  let written = Array(value.canonical.utf8)
  require((try? JSONSyntax.parse(written)) == value, "a value survives being written")
  require(JSONMessage.encode(value) == written, "a value has one form")
}

/// As messages of servers are read: whole numbers of a range. The first byte is the permitted number of levels.
private func readBounded(_ input: [UInt8]) {
  let range: ClosedRange<Int64> = -9_007_199_254_740_991...9_007_199_254_740_991
  let (levels, text) = (Int(input.first ?? 0) % 40, Array(input.dropFirst()))
  guard let value = try? JSONSyntax.parse(text, numbers: range, levels: levels) else { return }
  require(isWithin(value, range, levels: levels), "the limits hold")
  require((try? JSONSyntax.parse(text, levels: levels)) == value, "limits on numbers change no value")
}

private func isWithin(_ value: JSONValue, _ range: ClosedRange<Int64>, levels: Int) -> Bool {
  switch value {
  case .integer(let number): range.contains(number)
  case .fraction: false
  case .list(let values): levels > 0 && values.allSatisfy { isWithin($0, range, levels: levels - 1) }
  case .object(let members): levels > 0 && members.values.allSatisfy { isWithin($0, range, levels: levels - 1) }
  case .null, .bool, .text: true
  }
}

/// A member of each kind that messages have.
private struct Message: Codable, Equatable {
  enum Kind: String, Codable { case first, second }

  var text: String?
  var bool: Bool?
  var whole: Int64?
  var small: UInt8?
  var number: Double?
  var kind: Kind?
  var texts: [String]?
  var members: [String: JSONValue]?
  var parts: [Message]?
}

private func readMessage(_ text: [UInt8]) {
  guard let message = try? JSONMessage.decode(Message.self, from: text, numbers: nil) else { return }
  let again = try? JSONMessage.decode(Message.self, from: JSONMessage.encode(message), numbers: nil)
  require(again == message, "a message survives being written")
}
