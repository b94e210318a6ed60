// SPDX-License-Identifier: Apache-2.0
import CRNP

extension Keyring {
  /// Generates an Ed25519 primary key that certifies and signs, and a Curve25519 subkey that encrypts. Neither expires.
  func generateKeys(userID: String) throws(OpenPGPError) -> Handle {
    let generation = try Handle("rnp_op_generate_create", destroyedBy: rnp_op_generate_destroy) {
      rnp_op_generate_create(&$0, ffi, "EDDSA")
    }
    let operation = generation.pointer
    try check(rnp_op_generate_set_userid(operation, userID), "rnp_op_generate_set_userid")
    try check(rnp_op_generate_add_usage(operation, "certify"), "rnp_op_generate_add_usage")
    try check(rnp_op_generate_add_usage(operation, "sign"), "rnp_op_generate_add_usage")
    // The preferences that other software should follow when it encrypts to this key. They equal this module's own
    // choices.
    try check(rnp_op_generate_add_pref_cipher(operation, "AES256"), "rnp_op_generate_add_pref_cipher")
    try check(rnp_op_generate_add_pref_hash(operation, "SHA512"), "rnp_op_generate_add_pref_hash")
    try check(
      rnp_op_generate_add_pref_compression(operation, "Uncompressed"), "rnp_op_generate_add_pref_compression")
    let primary = try finish(generation)

    let subkeyGeneration = try Handle("rnp_op_generate_subkey_create", destroyedBy: rnp_op_generate_destroy) {
      [primary = primary.pointer] in rnp_op_generate_subkey_create(&$0, ffi, primary, "ECDH")
    }
    try check(rnp_op_generate_set_curve(subkeyGeneration.pointer, "Curve25519"), "rnp_op_generate_set_curve")
    try check(rnp_op_generate_add_usage(subkeyGeneration.pointer, "encrypt"), "rnp_op_generate_add_usage")
    _ = try finish(subkeyGeneration)
    return primary
  }

  private func finish(_ generation: borrowing Handle) throws(OpenPGPError) -> Handle {
    let operation = generation.pointer
    try check(rnp_op_generate_set_hash(operation, "SHA512"), "rnp_op_generate_set_hash")
    try check(rnp_op_generate_set_expiration(operation, 0), "rnp_op_generate_set_expiration")
    try check(rnp_op_generate_execute(operation), "rnp_op_generate_execute")
    return try Handle("rnp_op_generate_get_key", destroyedBy: rnp_key_handle_destroy) {
      rnp_op_generate_get_key(operation, &$0)
    }
  }
}
