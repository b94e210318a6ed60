// SPDX-License-Identifier: Apache-2.0
import COpenSSL
import Foundation
import ReferenceProtocol

/// Creates a private certificate authority and one server certificate, so that a new installation has TLS without an
/// external authority. Tokens authenticate the server by its key's pin; portals need `ca.pem`.
struct CertificateMaker {
  /// Certificates and keys in PEM.
  struct Certificates {
    let authority: String
    let authorityKey: String
    let server: String
    let serverKey: String
  }

  /// - Parameter hosts: DNS names or IP addresses in addition to localhost, 127.0.0.1 and ::1.
  /// - Throws: `InvalidHostError`, `OpenSSLError`.
  static func make(hosts: [String], now: Date = Date()) throws -> Certificates {
    let names = try hosts.map(alternativeName) + ["DNS:localhost", "IP:127.0.0.1", "IP:::1"]
    let authorityKey = try PrivateKey()
    let authority = try OwnCertificate(
      of: authorityKey, commonName: "Approval Token server CA", from: now - hour, until: now + 3650 * day)
    try authority.add(NID_basic_constraints, "critical,CA:TRUE,pathlen:0")
    try authority.add(NID_key_usage, "critical,keyCertSign,cRLSign")
    try authority.add(NID_subject_key_identifier, "hash")
    try authority.sign(with: authorityKey)
    let serverKey = try PrivateKey()
    // A common name has at most 64 characters (RFC 5280, A.1); clients read the alternative names.
    let commonName = hosts.first { $0.utf8.count <= 64 } ?? "localhost"
    let server = try OwnCertificate(
      of: serverKey, commonName: commonName, from: now - hour, until: now + 825 * day, issuer: authority)
    try server.add(NID_basic_constraints, "critical,CA:FALSE")
    try server.add(NID_key_usage, "critical,digitalSignature")
    try server.add(NID_ext_key_usage, "serverAuth")
    try server.add(NID_subject_alt_name, names.joined(separator: ","))
    try server.add(NID_authority_key_identifier, "keyid:always")
    try server.sign(with: authorityKey)
    return Certificates(
      authority: try authority.pem, authorityKey: try authorityKey.pem, server: try server.pem,
      serverKey: try serverKey.pem)
  }

  struct InvalidHostError: Error, CustomStringConvertible {
    let host: String
    var description: String { "\"\(host)\" is neither a host name nor an IP address" }
  }

  private static let hour: TimeInterval = 3600
  private static let day: TimeInterval = 86_400

  /// A name as in OpenSSL's configuration (x509v3_config(5)). It has no character with a meaning there.
  private static func alternativeName(_ host: String) throws -> String {
    if let address = IPAddressBytes.parse(host) {
      guard address.count == 16 else { return "IP:" + address.map(String.init).joined(separator: ".") }
      let groups = stride(from: 0, to: 16, by: 2).map { index in
        String(UInt16(address[index]) << 8 | UInt16(address[index + 1]), radix: 16)
      }
      return "IP:" + groups.joined(separator: ":")
    }
    let labels = host.split(separator: ".", omittingEmptySubsequences: false)
    let isName =
      host.utf8.count <= 253
      && labels.allSatisfy { label in
        (1...63).contains(label.utf8.count)
          && label.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
      }
    guard isName else { throw InvalidHostError(host: host) }
    return "DNS:" + host
  }
}

/// An operation that OpenSSL refused.
struct OpenSSLError: Error, CustomStringConvertible {
  let description: String

  init(_ what: String) {
    var text = [CChar](repeating: 0, count: 256)
    ERR_error_string_n(ERR_get_error(), &text, text.count)
    ERR_clear_error()
    description = "\(what): \(text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) })"
  }
}

/// A P-256 key pair.
private final class PrivateKey {
  let pointer: OpaquePointer

  init() throws {
    let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil)
    defer { EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_group_name(context, "P-256") == 1,
      EVP_PKEY_generate(context, &key) == 1, let key
    else { throw OpenSSLError("a key could not be generated") }
    pointer = key
  }

  deinit { EVP_PKEY_free(pointer) }

  /// PKCS #8.
  var pem: String {
    get throws { try text { PEM_write_bio_PrivateKey($0, pointer, nil, nil, 0, nil, nil) } }
  }
}

/// A certificate that is being made.
private final class OwnCertificate {
  private let certificate: OpaquePointer
  private let issuer: OpaquePointer

  /// - Parameter issuer: nil for the certificate itself.
  init(
    of key: PrivateKey, commonName: String, from start: Date, until end: Date, issuer: OwnCertificate? = nil
  ) throws {
    guard let certificate = X509_new() else { throw OpenSSLError("a certificate could not be created") }
    self.certificate = certificate
    self.issuer = issuer?.certificate ?? certificate
    let serial = BN_new()
    defer { BN_free(serial) }
    let name = X509_get_subject_name(certificate)
    let bytes = Array(commonName.utf8)
    guard X509_set_version(certificate, 2) == 1, BN_rand(serial, 159, -1, 0) == 1,
      BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(certificate)) != nil,
      ASN1_TIME_set(X509_getm_notBefore(certificate), time_t(start.timeIntervalSince1970)) != nil,
      ASN1_TIME_set(X509_getm_notAfter(certificate), time_t(end.timeIntervalSince1970)) != nil,
      X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_FLAG, bytes, Int32(bytes.count), -1, 0) == 1,
      X509_set_issuer_name(certificate, X509_get_subject_name(self.issuer)) == 1,
      X509_set_pubkey(certificate, key.pointer) == 1
    else { throw OpenSSLError("a certificate could not be created") }
  }

  deinit { X509_free(certificate) }

  /// - Parameter value: as in x509v3_config(5).
  func add(_ extensionID: Int32, _ value: String) throws {
    var context = X509V3_CTX()
    X509V3_set_ctx(&context, issuer, certificate, nil, nil, 0)
    guard let new = X509V3_EXT_conf_nid(nil, &context, extensionID, value) else {
      throw OpenSSLError("the extension \"\(value)\" could not be created")
    }
    defer { X509_EXTENSION_free(new) }
    guard X509_add_ext(certificate, new, -1) == 1 else { throw OpenSSLError("the extension could not be added") }
  }

  func sign(with key: PrivateKey) throws {
    guard X509_sign(certificate, key.pointer, EVP_sha256()) > 0 else {
      throw OpenSSLError("a certificate could not be signed")
    }
  }

  var pem: String {
    get throws { try text { PEM_write_bio_X509($0, certificate) } }
  }
}

/// What `write` writes, as text.
private func text(_ write: (OpaquePointer) -> Int32) throws -> String {
  guard let memory = BIO_new(BIO_s_mem()) else { throw OpenSSLError("out of memory") }
  defer { BIO_free(memory) }
  guard write(memory) == 1 else { throw OpenSSLError("a PEM file could not be written") }
  var bytes = [UInt8](repeating: 0, count: Int(BIO_ctrl_pending(memory)))
  let count = BIO_read(memory, &bytes, Int32(bytes.count))
  guard count == Int32(bytes.count) else { throw OpenSSLError("a PEM file could not be written") }
  return String(decoding: bytes, as: UTF8.self)
}
