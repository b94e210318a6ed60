// SPDX-License-Identifier: Apache-2.0
import CRNP

/// The two keys of a certificate as librnp reads them.
struct CertificateInspection: ~Copyable {
  private let keyring: Keyring
  private let primary: Handle
  private let subkey: Handle
  /// The newest creation time of the keys and of the signatures on them, seconds since 1970.
  let newestPart: UInt32

  /// - Parameter bytes: must have the layout of a certificate.
  init(of bytes: UnsafeRawBufferPointer, at time: UInt32) throws(OpenPGPError) {
    let keyring = try Keyring(at: time)
    try keyring.load(bytes, .publicParts)
    let primary = try keyring.onlyPrimaryKey()
    let subkey = try Handle("rnp_key_get_subkey_at", destroyedBy: rnp_key_handle_destroy) {
      [primary = primary.pointer] in
      rnp_key_get_subkey_at(primary, 0, &$0)
    }
    newestPart = max(try newestPartOf(primary.pointer), try newestPartOf(subkey.pointer))
    self.keyring = keyring
    self.primary = primary
    self.subkey = subkey
  }

  /// Checks the keys against the profile.
  func certificate(_ bytes: UnsafeRawBufferPointer) throws(OpenPGPError) -> OpenPGPCertificate {
    try requireAlgorithm("EDDSA", curve: "Ed25519", of: primary)
    try requireAlgorithm("ECDH", curve: "Curve25519", of: subkey)
    try requireValid(primary, named: "primary key")
    try requireValid(subkey, named: "subkey")
    try requireUsage("sign", of: primary)
    try requireUsage("encrypt", of: subkey)
    return OpenPGPCertificate(
      bytes: Array(bytes), fingerprint: try fingerprint(of: primary.pointer), newestPart: newestPart,
      // The subkey's validity includes that of the primary key.
      validUntil: try value("rnp_key_valid_till", initially: 0) { rnp_key_valid_till(subkey.pointer, &$0) })
  }

  private func requireAlgorithm(_ name: String, curve: String, of key: borrowing Handle) throws(OpenPGPError) {
    let foundName = try string("rnp_key_get_alg") { rnp_key_get_alg(key.pointer, &$0) }
    guard foundName == name else { throw .unsupported("\(foundName) key, expected \(name)") }
    let foundCurve = try string("rnp_key_get_curve") { rnp_key_get_curve(key.pointer, &$0) }
    guard foundCurve == curve else { throw .unsupported("\(foundCurve) key, expected \(curve)") }
  }

  private func requireValid(_ key: borrowing Handle, named name: String) throws(OpenPGPError) {
    if try flag(rnp_key_is_valid, "rnp_key_is_valid", of: key) { return }
    if try flag(rnp_key_is_revoked, "rnp_key_is_revoked", of: key) { throw .certificateNotValid("revoked \(name)") }
    if try flag(rnp_key_is_expired, "rnp_key_is_expired", of: key) { throw .certificateNotValid("expired \(name)") }
    throw .certificateNotValid("\(name) without valid self-signature")
  }

  private func requireUsage(_ usage: String, of key: borrowing Handle) throws(OpenPGPError) {
    guard try value("rnp_key_allows_usage", initially: false, { rnp_key_allows_usage(key.pointer, usage, &$0) }) else {
      throw .unsupported("key that may not \(usage)")
    }
  }

  private func flag(
    _ get: (OpaquePointer?, UnsafeMutablePointer<Bool>?) -> rnp_result_t, _ call: String, of key: borrowing Handle
  ) throws(OpenPGPError) -> Bool {
    try value(call, initially: false) { get(key.pointer, &$0) }
  }
}

func fingerprint(of key: OpaquePointer) throws(OpenPGPError) -> String {
  try string("rnp_key_get_fprint") { rnp_key_get_fprint(key, &$0) }
}

extension Keyring {
  /// The primary key, if there is exactly one and it has one subkey.
  func onlyPrimaryKey() throws(OpenPGPError) -> Handle {
    var fingerprints: [String] = []
    let iterator = try Handle("rnp_identifier_iterator_create", destroyedBy: rnp_identifier_iterator_destroy) {
      rnp_identifier_iterator_create(ffi, &$0, "fingerprint")
    }
    var next: UnsafePointer<CChar>?
    while rnp_identifier_iterator_next(iterator.pointer, &next) == RNP_SUCCESS, let next {
      fingerprints.append(String(cString: next))
    }
    guard fingerprints.count == 2 else { throw .malformed("\(fingerprints.count) keys, expected 2") }
    for fingerprint in fingerprints {
      let key = try key(fingerprint)
      if try value("rnp_key_is_primary", initially: false, { rnp_key_is_primary(key.pointer, &$0) }) { return key }
    }
    throw .malformed("no primary key")
  }
}

private func newestPartOf(_ key: OpaquePointer) throws(OpenPGPError) -> UInt32 {
  var newest = try value("rnp_key_get_creation", initially: 0) { rnp_key_get_creation(key, &$0) }
  for index in 0..<(try value("rnp_key_get_signature_count", initially: 0) { rnp_key_get_signature_count(key, &$0) }) {
    let made = try creation { rnp_key_get_signature_at(key, index, &$0) }
    newest = max(newest, made)
  }
  for index in 0..<(try value("rnp_key_get_uid_count", initially: 0) { rnp_key_get_uid_count(key, &$0) }) {
    let uid = try Handle("rnp_key_get_uid_handle_at", destroyedBy: rnp_uid_handle_destroy) {
      rnp_key_get_uid_handle_at(key, index, &$0)
    }
    let count = try value("rnp_uid_get_signature_count", initially: 0) {
      rnp_uid_get_signature_count(uid.pointer, &$0)
    }
    for index in 0..<count {
      let made = try creation { rnp_uid_get_signature_at(uid.pointer, index, &$0) }
      newest = max(newest, made)
    }
  }
  return newest
}

private func creation(
  ofSignature get: (inout OpaquePointer?) -> rnp_result_t
) throws(OpenPGPError) -> UInt32 {
  let signature = try Handle("rnp signature", destroyedBy: rnp_signature_handle_destroy, madeBy: get)
  return try value("rnp_signature_get_creation", initially: 0) {
    rnp_signature_get_creation(signature.pointer, &$0)
  }
}
