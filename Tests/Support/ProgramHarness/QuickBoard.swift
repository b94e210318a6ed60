// SPDX-License-Identifier: Apache-2.0
/// Profiles of a simulated board with short times. Only the time after which a button is stuck is long, so that a
/// press that a busy machine prolongs is not taken for that.
package enum QuickBoard {
  package static let withButton = """
    name = "quick"
    description = "A simulated board with short times"
    kind = "simulated"
    [gestures]
    guard_time_ms = 300
    accept_hold_ms = 500
    stuck_ms = 60000
    """

  package static let withKeypad =
    withButton + """

      [keypad]
      kind = "simulated"
      scrypt_log2_n = 14
      """
}
