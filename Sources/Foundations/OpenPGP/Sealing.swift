// SPDX-License-Identifier: Apache-2.0
import CRNP

extension OpenPGPKey {
  /// Signs with this key and encrypts to `recipient`: one-pass signature with SHA-512, AES-256 with MDC (SEIPD v1),
  /// not compressed, binary.
  ///
  /// The signature does not cover the recipient. The plaintext must name the recipient; otherwise the recipient could
  /// forward the message to another peer as if it had been sent to that peer.
  ///
  /// - Parameters:
  ///   - plaintext: at least one byte.
  ///   - time: seconds since 1970, `nil` for the system's clock. The signature's time, but never before the creation of
  ///     this key.
  /// - Throws: `certificateNotValid` if `recipient` has expired, `unsupported` for an empty plaintext, `libraryFailure`
  ///   for a librnp that does not choose random session keys (CVE-2025-13470).
  package func seal(
    _ plaintext: [UInt8], to recipient: OpenPGPCertificate, at time: Int64? = nil
  ) throws(OpenPGPError) -> [UInt8] {
    guard !plaintext.isEmpty else { throw .unsupported("empty plaintext") }
    try SessionKeyCheck.verdict.get()
    return try sealUnchecked(plaintext, to: recipient, at: time)
  }

  /// Seals without `SessionKeyCheck`, which calls this function itself. All other callers must use `seal`.
  func sealUnchecked(
    _ plaintext: [UInt8], to recipient: OpenPGPCertificate, at time: Int64?
  ) throws(OpenPGPError) -> [UInt8] {
    try withKeyring(for: recipient, at: time) { (keyring, now) throws(OpenPGPError) in
      let signer = try keyring.key(certificate.fingerprint)
      let recipient = try keyring.key(recipient.fingerprint)
      return try plaintext.withUnsafeBufferPointer { (plaintext) throws(OpenPGPError) in
        let input = try input(reading: UnsafeRawBufferPointer(plaintext))
        let output = try MemoryOutput()
        try keyring.seal(
          input.pointer, into: output.pointer, signedBy: signer.pointer, at: now, to: recipient.pointer)
        return output.bytes()
      }
    }
  }
}

extension Keyring {
  fileprivate func seal(
    _ input: OpaquePointer, into output: OpaquePointer, signedBy signer: OpaquePointer, at time: UInt32,
    to recipient: OpaquePointer
  ) throws(OpenPGPError) {
    let encryption = try Handle("rnp_op_encrypt_create", destroyedBy: rnp_op_encrypt_destroy) {
      rnp_op_encrypt_create(&$0, ffi, input, output)
    }
    let operation = encryption.pointer
    try check(rnp_op_encrypt_add_recipient(operation, recipient), "rnp_op_encrypt_add_recipient")
    try check(rnp_op_encrypt_add_signature(operation, signer, nil), "rnp_op_encrypt_add_signature")
    try check(rnp_op_encrypt_set_creation_time(operation, time), "rnp_op_encrypt_set_creation_time")
    try check(rnp_op_encrypt_set_hash(operation, "SHA512"), "rnp_op_encrypt_set_hash")
    try check(rnp_op_encrypt_set_cipher(operation, "AES256"), "rnp_op_encrypt_set_cipher")
    try check(rnp_op_encrypt_set_aead(operation, "None"), "rnp_op_encrypt_set_aead")
    try check(rnp_op_encrypt_set_compression(operation, "Uncompressed", 0), "rnp_op_encrypt_set_compression")
    try check(rnp_op_encrypt_execute(operation), "rnp_op_encrypt_execute")
  }
}
