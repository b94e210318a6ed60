// SPDX-License-Identifier: Apache-2.0
import CRNP
import Secrets

@testable import OpenPGP

/// A message that `seal` would not make: with any number of signers and any cipher, hash and dates.
struct Forgery {
  var plaintext = Array("approve transfer of 10".utf8)
  var signers: [OpenPGPKey] = []
  var recipients: [OpenPGPCertificate] = []
  var password: String?
  var hash = "SHA512"
  var cipher = "AES256"
  var aead = "None"
  var compression = "Uncompressed"
  var compressionLevel: Int32 = 0
  /// Seconds since 1970.
  var creation: UInt32 = 1_800_000_000
  /// Seconds after `creation`; 0 for no expiry.
  var lifetime: UInt32 = 0
  /// Whether the plaintext already consists of packets. It then replaces the literal packet with arbitrary ones.
  var isPackets = false

  func message() throws -> [UInt8] {
    let keyring = try Keyring(at: max(creation, (recipients + signers.map(\.certificate)).map(\.newestPart).max() ?? 0))
    for signer in signers {
      try signer.secret.withExposedSecret { (bytes) throws(OpenPGPError) in try keyring.load(bytes, .secretParts) }
    }
    for recipient in recipients { try keyring.load(recipient) }
    defer { extendLifetime(keyring) }
    return try plaintext.withUnsafeBufferPointer { plaintext in
      let input = try input(reading: UnsafeRawBufferPointer(plaintext))
      let output = try MemoryOutput()
      let handle = try Handle("encrypt", destroyedBy: rnp_op_encrypt_destroy) { [to = output.pointer] in
        rnp_op_encrypt_create(&$0, keyring.ffi, input.pointer, to)
      }
      let operation = handle.pointer
      for recipient in recipients {
        let key = try keyring.key(recipient.fingerprint)
        try check(rnp_op_encrypt_add_recipient(operation, key.pointer), "recipient")
      }
      for signer in signers {
        let key = try keyring.key(signer.certificate.fingerprint)
        try check(rnp_op_encrypt_add_signature(operation, key.pointer, nil), "signer")
      }
      if let password { try check(rnp_op_encrypt_add_password(operation, password, nil, 0, nil), "password") }
      try check(rnp_op_encrypt_set_hash(operation, hash), "hash")
      try check(rnp_op_encrypt_set_cipher(operation, cipher), "cipher")
      try check(rnp_op_encrypt_set_aead(operation, aead), "AEAD")
      try check(rnp_op_encrypt_set_compression(operation, compression, compressionLevel), "compression")
      try check(rnp_op_encrypt_set_creation_time(operation, creation), "creation")
      try check(rnp_op_encrypt_set_expiration_time(operation, lifetime), "expiration")
      if isPackets { try check(rnp_op_encrypt_set_flags(operation, RNP_ENCRYPT_NOWRAP), "flags") }
      try check(rnp_op_encrypt_execute(operation), "execute")
      return output.bytes()
    }
  }
}

/// A signature without encryption: one-pass packet, literal, signature.
func signed(_ plaintext: [UInt8], by signer: OpenPGPKey) throws -> [UInt8] {
  let keyring = try Keyring(at: 1_750_000_000)
  defer { extendLifetime(keyring) }
  try signer.secret.withExposedSecret { (bytes) throws(OpenPGPError) in try keyring.load(bytes, .secretParts) }
  return try plaintext.withUnsafeBufferPointer { plaintext in
    let input = try input(reading: UnsafeRawBufferPointer(plaintext))
    let output = try MemoryOutput()
    let handle = try Handle("sign", destroyedBy: rnp_op_sign_destroy) { [to = output.pointer] in
      rnp_op_sign_create(&$0, keyring.ffi, input.pointer, to)
    }
    let key = try keyring.key(signer.certificate.fingerprint)
    try check(rnp_op_sign_add_signature(handle.pointer, key.pointer, nil), "signer")
    try check(rnp_op_sign_set_hash(handle.pointer, "SHA512"), "hash")
    try check(rnp_op_sign_set_compression(handle.pointer, "Uncompressed", 0), "compression")
    try check(rnp_op_sign_execute(handle.pointer), "execute")
    return output.bytes()
  }
}

/// A certificate that `generate` would not make.
struct CertificateForgery {
  var primary = (algorithm: "EDDSA", curve: nil as String?)
  var subkey: (algorithm: String, curve: String?, usage: String)? = ("ECDH", "Curve25519", "encrypt")
  /// Seconds since 1970.
  var creation: UInt32 = 1_800_000_000
  /// Seconds after `creation`; 0 for no expiry.
  var lifetime: UInt32 = 0
  var isRevoked = false

  func bytes(_ parts: UInt32 = RNP_KEY_EXPORT_PUBLIC) throws -> [UInt8] {
    let keyring = try Keyring(at: creation)
    defer { extendLifetime(keyring) }
    let generation = try Handle("generate", destroyedBy: rnp_op_generate_destroy) {
      rnp_op_generate_create(&$0, keyring.ffi, primary.algorithm)
    }
    try check(rnp_op_generate_set_userid(generation.pointer, "forged"), "user ID")
    let key = try finish(generation, curve: primary.curve)
    if let subkey {
      let generation = try Handle("generate", destroyedBy: rnp_op_generate_destroy) { [key = key.pointer] in
        rnp_op_generate_subkey_create(&$0, keyring.ffi, key, subkey.algorithm)
      }
      try check(rnp_op_generate_clear_usage(generation.pointer), "usage")
      try check(rnp_op_generate_add_usage(generation.pointer, subkey.usage), subkey.usage)
      _ = try finish(generation, curve: subkey.curve)
    }
    if isRevoked { try check(rnp_key_revoke(key.pointer, 0, "SHA512", "compromised", "lost"), "revoke") }
    let output = try MemoryOutput()
    try check(rnp_key_export(key.pointer, output.pointer, parts | RNP_KEY_EXPORT_SUBKEYS), "export")
    return output.bytes()
  }

  private func finish(_ generation: borrowing Handle, curve: String?) throws -> Handle {
    let operation = generation.pointer
    if let curve { try check(rnp_op_generate_set_curve(operation, curve), curve) }
    try check(rnp_op_generate_set_hash(operation, "SHA512"), "hash")
    try check(rnp_op_generate_set_expiration(operation, lifetime), "expiration")
    try check(rnp_op_generate_execute(operation), "execute")
    return try Handle("key", destroyedBy: rnp_key_handle_destroy) { rnp_op_generate_get_key(operation, &$0) }
  }
}
