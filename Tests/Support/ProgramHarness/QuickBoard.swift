// SPDX-License-Identifier: Apache-2.0
/// Profiles of a simulated board with short times.
package enum QuickBoard {
  package static let withButton = """
    name = "quick"
    description = "A simulated board with short times"
    kind = "simulated"
    [gestures]
    guard_time_ms = 300
    accept_hold_ms = 500
    """

  package static let withKeypad =
    withButton + """

      [keypad]
      kind = "simulated"
      scrypt_log2_n = 14
      """
}
