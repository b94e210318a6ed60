// SPDX-License-Identifier: Apache-2.0
/// Whether the text can be the name of an account: 1 to 64 bytes without white space and control or format characters.
package func isAccountName(_ name: String) -> Bool {
  (1...64).contains(name.utf8.count) && name.isSafeToShow && !name.contains { $0.isWhitespace || $0.isNewline }
}
