// SPDX-License-Identifier: Apache-2.0
import CLinux
import COpenSSL
import CTLS
import Glibc
package import HTTP

/// Verifies certificates by the rules of `ServerTrust` during the TLS handshake, before any byte of a request is sent.
/// Uses OpenSSL's result, with one exception: for a pinned key the issuer may be unknown. Not thread-safe.
package final class CertificateVerifier {
  /// Which component requires a pinned key if there are pins.
  package enum PinEnforcement {
    case here
    /// libcurl (`CURLOPT_PINNEDPUBLICKEY`). An https proxy is also verified here, and the pin does not apply to it.
    case elsewhere
  }

  package let trust: ServerTrust
  /// The reason why the last certificate was rejected; nil if it was accepted.
  package private(set) var refusal: String?
  /// The expiry of the last accepted certificate in Unix seconds; nil if there was none or its date is unreadable.
  package private(set) var expiry: Int64?
  private let pinEnforcement: PinEnforcement

  package init(trust: ServerTrust, pinEnforcement: PinEnforcement) {
    self.trust = trust
    self.pinEnforcement = pinEnforcement
  }

  /// The results of OpenSSL for a sound chain from an unknown issuer.
  package static let unknownIssuer: Set<Int32> = [
    X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
    X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
    X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
  ]

  /// Installs this object as the certificate verifier of a TLS context (`SSL_CTX`), which it must outlive. The caller
  /// must configure the verification of the host name.
  package func install(over tlsContext: OpaquePointer) {
    SSL_CTX_set_cert_verify_callback(
      tlsContext,
      { store, verifier in
        guard let store, let verifier else { return 0 }
        return Unmanaged<CertificateVerifier>.fromOpaque(verifier).takeUnretainedValue().verify(store)
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  private func verify(_ store: OpaquePointer) -> Int32 {
    let now = Int64(time(nil))
    let floor = trust.floor(boardTime: now, isSynchronized: approval_linux_clock_is_synchronized() == 1)
    if now < floor {
      X509_STORE_CTX_set_time(store, 0, time_t(floor))
      X509_STORE_CTX_set_verify_cb(store, acceptNotYetValid)
    }
    let isPinned = X509_STORE_CTX_get0_cert(store).flatMap { pin(of: $0) }.map(trust.pins.contains) ?? false
    if isPinned { X509_STORE_CTX_set_verify_cb(store, acceptUnknownIssuer) }
    let verdict = X509_verify_cert(store)
    refusal = nil
    if verdict != 1 {
      refusal = String(cString: X509_verify_cert_error_string(Int(X509_STORE_CTX_get_error(store))))
    } else if pinEnforcement == .here, !trust.pins.isEmpty, !isPinned {
      refusal = "its key matches none of the pinned keys"
      X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION)
    }
    expiry = refusal == nil ? X509_STORE_CTX_get0_cert(store).flatMap { expiryOf($0) } : nil
    return refusal == nil ? 1 : 0
  }
}

/// `notAfter` in Unix seconds; nil if it is unreadable.
private func expiryOf(_ certificate: OpaquePointer) -> Int64? {
  var calendar = tm()
  guard ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &calendar) == 1 else { return nil }
  let seconds = timegm(&calendar)
  return seconds >= 0 ? Int64(seconds) : nil
}

/// Accepts certificates that are not yet valid while the clock may be behind. The present time is then only a lower
/// bound: expired certificates are rejected, but a future notBefore may have passed.
private func acceptNotYetValid(verdict: Int32, store: OpaquePointer?) -> Int32 {
  guard verdict == 0, isClockBehind(store), X509_STORE_CTX_get_error(store) == X509_V_ERR_CERT_NOT_YET_VALID else {
    return verdict
  }
  X509_STORE_CTX_set_error(store, X509_V_OK)
  return 1
}

private func isClockBehind(_ store: OpaquePointer?) -> Bool {
  X509_VERIFY_PARAM_get_flags(X509_STORE_CTX_get0_param(store)) & UInt(X509_V_FLAG_USE_CHECK_TIME) != 0
}

private func acceptUnknownIssuer(verdict: Int32, store: OpaquePointer?) -> Int32 {
  let verdict = acceptNotYetValid(verdict: verdict, store: store)
  guard verdict == 0, CertificateVerifier.unknownIssuer.contains(X509_STORE_CTX_get_error(store)) else {
    return verdict
  }
  // OpenSSL then checks the dates, except those of a last certificate whose issuer is missing.
  let dates = checkValidityDates(store)
  X509_STORE_CTX_set_error(store, dates)
  return dates == X509_V_OK ? 1 : 0
}

private func checkValidityDates(_ store: OpaquePointer?) -> Int32 {
  let isClockBehind = isClockBehind(store)
  var moment = isClockBehind ? X509_VERIFY_PARAM_get_time(X509_STORE_CTX_get0_param(store)) : time(nil)
  let chain = X509_STORE_CTX_get0_chain(store)
  for index in 0..<OPENSSL_sk_num(chain) {
    let certificate = OpaquePointer(OPENSSL_sk_value(chain, index))
    // 0 means that the date is unreadable, which is also an error.
    let youth = X509_cmp_time(X509_get0_notBefore(certificate), &moment)
    if youth == 0 || youth > 0 && !isClockBehind { return X509_V_ERR_CERT_NOT_YET_VALID }
    if X509_cmp_time(X509_get0_notAfter(certificate), &moment) <= 0 { return X509_V_ERR_CERT_HAS_EXPIRED }
  }
  return X509_V_OK
}

/// The pin of this certificate's key: Base64 of SHA-256 over its SubjectPublicKeyInfo.
private func pin(of certificate: OpaquePointer) -> String? {
  var encoded: UnsafeMutablePointer<UInt8>?
  let count = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &encoded)
  defer { CRYPTO_free(encoded, #file, #line) }
  guard count > 0, let encoded else { return nil }
  var digest = [UInt8](repeating: 0, count: 32)
  guard EVP_Digest(encoded, Int(count), &digest, nil, EVP_sha256(), nil) == 1 else { return nil }
  var text = [UInt8](repeating: 0, count: 45)
  let length = EVP_EncodeBlock(&text, digest, Int32(digest.count))
  return String(decoding: text.prefix(Int(length)), as: UTF8.self)
}
