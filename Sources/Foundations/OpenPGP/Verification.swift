// SPDX-License-Identifier: Apache-2.0
import CRNP

/// The result of one verification of a message by librnp.
struct Verification {
  struct Signature {
    /// Whether librnp reports the signature as valid.
    let isValid: Bool
    /// Upper-case hex: the fingerprint in the signature, which librnp compares with the verifying key; the key ID if
    /// there is no fingerprint.
    let signer: String
    /// Seconds since 1970.
    let creation: UInt32
    /// "binary" for a signature of an unmodified document.
    let kind: String
    let hash: String
  }

  private let result: rnp_result_t
  private let isForUs: Bool
  private let isIntact: Bool
  private let cipher: String
  private let signatureCount: Int
  /// The first signature; nil if it is unreadable.
  let signature: Signature?
  private let output: [UInt8]

  init(of message: UnsafeRawBufferPointer, in keyring: Keyring, limit: Int) throws(OpenPGPError) {
    let input = try input(reading: message)
    let memory = try MemoryOutput(limit: max(1, limit))
    let handle = try Handle("rnp_op_verify_create", destroyedBy: rnp_op_verify_destroy) {
      [output = memory.pointer] in rnp_op_verify_create(&$0, keyring.ffi, input.pointer, output)
    }
    let operation = handle.pointer
    result = rnp_op_verify_execute(operation)
    isForUs =
      try value("rnp_op_verify_get_used_recipient", initially: nil) {
        rnp_op_verify_get_used_recipient(operation, &$0)
      } != nil
    isIntact = try value("rnp_op_verify_get_protection_info", initially: false) {
      rnp_op_verify_get_protection_info(operation, nil, nil, &$0)
    }
    cipher = try string("rnp_op_verify_get_protection_info") {
      rnp_op_verify_get_protection_info(operation, nil, &$0, nil)
    }
    signatureCount = try value("rnp_op_verify_get_signature_count", initially: 0) {
      rnp_op_verify_get_signature_count(operation, &$0)
    }
    signature = signatureCount > 0 ? try Signature(firstOf: operation) : nil
    output = memory.bytes()
  }

  /// The plaintext, if all checks succeed.
  func plaintext(signedBy signer: OpenPGPCertificate, limit: Int) throws(OpenPGPError) -> [UInt8] {
    guard isForUs else { throw .notForUs }
    guard result != RNP_ERROR_WRITE, output.count <= limit else { throw .tooLarge(limit: limit) }
    guard isIntact else { throw .notIntact }
    guard cipher == "AES256" else { throw .unsupported("cipher \(cipher)") }
    guard signatureCount > 0 else { throw .unsigned }
    guard signatureCount == 1 else { throw .unsupported("\(signatureCount) signatures") }
    guard let signature else { throw .badSignature }
    guard signature.signer == signer.fingerprint else { throw .wrongSigner(fingerprint: signature.signer) }
    guard signature.isValid, result == RNP_SUCCESS else { throw .badSignature }
    guard signature.kind == "binary" else { throw .unsupported("signature of kind \(signature.kind)") }
    guard ["SHA256", "SHA384", "SHA512"].contains(signature.hash) else {
      throw .unsupported("signature with \(signature.hash)")
    }
    return output
  }
}

extension Verification.Signature {
  /// - Returns: `nil` if librnp could not read the signature.
  fileprivate init?(firstOf operation: OpaquePointer) throws(OpenPGPError) {
    // The signature object belongs to the operation and must not be freed.
    let verified = try value("rnp_op_verify_get_signature_at", initially: nil) {
      rnp_op_verify_get_signature_at(operation, 0, &$0)
    }
    let status = rnp_op_verify_signature_get_status(verified)
    guard status != RNP_ERROR_SIGNATURE_UNKNOWN else { return nil }
    let handle = try Handle("rnp_op_verify_signature_get_handle", destroyedBy: rnp_signature_handle_destroy) {
      rnp_op_verify_signature_get_handle(verified, &$0)
    }
    let signature = handle.pointer
    let fingerprint = try string("rnp_signature_get_key_fprint") { rnp_signature_get_key_fprint(signature, &$0) }
    isValid = status == RNP_SUCCESS
    signer =
      fingerprint.isEmpty
      ? try string("rnp_signature_get_keyid") { rnp_signature_get_keyid(signature, &$0) } : fingerprint
    creation = try value("rnp_signature_get_creation", initially: 0) { rnp_signature_get_creation(signature, &$0) }
    kind = try string("rnp_signature_get_type") { rnp_signature_get_type(signature, &$0) }
    hash = try string("rnp_signature_get_hash_alg") { rnp_signature_get_hash_alg(signature, &$0) }
  }
}
