// SPDX-License-Identifier: Apache-2.0
/// The columns for the rotation of the pepper, in both engines.
enum FormerPepperSchema {
  /// Whether the hash was made with the former pepper. A row that is used gets a new hash.
  /// - Parameter number: the engine's type of whole numbers.
  static func statements(number: String) -> [String] {
    ["api_client", "activation_code", "fleet_token"].map {
      "ALTER TABLE \($0) ADD COLUMN needs_former_pepper \(number) NOT NULL DEFAULT 0"
    }
  }
}
