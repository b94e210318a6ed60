// SPDX-License-Identifier: Apache-2.0
/// A value of a configuration.
package enum TOMLValue: Sendable, Equatable {
  case string(String)
  case integer(Int)
  case boolean(Bool)
  case array([TOMLValue])
  case table([String: TOMLValue])

  var string: String? { if case .string(let text) = self { text } else { nil } }

  var integer: Int? { if case .integer(let number) = self { number } else { nil } }

  var boolean: Bool? { if case .boolean(let flag) = self { flag } else { nil } }

  var array: [TOMLValue]? { if case .array(let elements) = self { elements } else { nil } }

  var table: [String: TOMLValue]? { if case .table(let members) = self { members } else { nil } }
}
