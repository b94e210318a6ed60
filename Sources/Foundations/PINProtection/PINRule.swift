// SPDX-License-Identifier: Apache-2.0
/// The rules that a new PIN can break. Names and numbers are those of earlier enrollment apps.
package enum PINRule: UInt8, Sendable, CaseIterable {
  /// The PIN is a common one on the block list.
  case blockListed = 1
  /// All digits have one constant difference other than zero: 12345, 13579, 97531.
  case sequence
  /// A digit is repeated too often in a row.
  case repeats
  /// The PIN does not have the required number of digits.
  case length

  /// 1 to 4, as blinked by the panel.
  package var ordinal: Int { Int(rawValue) }
  /// The error number, 9011 to 9014.
  package var number: Int { 9010 + ordinal }
}
