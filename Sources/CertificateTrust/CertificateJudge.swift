import CLinux
import COpenSSL
public import Courier
import Glibc

/// Judges certificates as `ServerTrust` says, inside the TLS handshake and therefore before a byte of a request leaves.
///
/// Everything is OpenSSL's own verdict but one thing: for a pinned key it does not matter who issued the certificate.
/// Used by one thread.
public final class CertificateJudge {
  /// Who sees to it that a server has a pinned key if there are pins.
  public enum PinEnforcement {
    case here
    /// libcurl (`CURLOPT_PINNEDPUBLICKEY`): an https proxy comes by here too, and the pin is not meant for it.
    case elsewhere
  }

  public let trust: ServerTrust
  /// Why the last certificate was not trusted; nil if it was.
  public private(set) var refusal: String?
  /// Unix seconds: when the last certificate that was trusted expires; nil if none was, or if its date cannot be read.
  public private(set) var expiry: Int64?
  private let pinEnforcement: PinEnforcement

  public init(trust: ServerTrust, pinEnforcement: PinEnforcement) {
    self.trust = trust
    self.pinEnforcement = pinEnforcement
  }

  /// What is wrong with a chain that is sound but leads to nobody we know.
  public static let unknownIssuer: Set<Int32> = [
    X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
    X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
    X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
  ]

  /// Makes this judge, which must outlive it, the one the TLS context (`SSL_CTX`) asks. The host's name is the caller's to
  /// have checked.
  public func preside(over tlsContext: OpaquePointer) {
    SSL_CTX_set_cert_verify_callback(
      tlsContext,
      { store, judge in
        guard let store, let judge else { return 0 }
        return Unmanaged<CertificateJudge>.fromOpaque(judge).takeUnretainedValue().judge(store)
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  private func judge(_ store: OpaquePointer) -> Int32 {
    let now = Int64(time(nil))
    let floor = trust.floor(boardTime: now, isSynchronized: approval_linux_clock_is_synchronized() == 1)
    if now < floor {
      X509_STORE_CTX_set_time(store, 0, time_t(floor))
      X509_STORE_CTX_set_verify_cb(store, forgiveYouth)
    }
    let isPinned = X509_STORE_CTX_get0_cert(store).flatMap { pin(of: $0) }.map(trust.pins.contains) ?? false
    if isPinned { X509_STORE_CTX_set_verify_cb(store, forgiveUnknownIssuer) }
    let verdict = X509_verify_cert(store)
    refusal = nil
    if verdict != 1 {
      refusal = String(cString: X509_verify_cert_error_string(Int(X509_STORE_CTX_get_error(store))))
    } else if pinEnforcement == .here, !trust.pins.isEmpty, !isPinned {
      refusal = "its key is none of the pinned ones"
      X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION)
    }
    expiry = refusal == nil ? X509_STORE_CTX_get0_cert(store).flatMap { expiryOf($0) } : nil
    return refusal == nil ? 1 : 0
  }
}

/// Unix seconds of `notAfter`; nil if it cannot be read.
private func expiryOf(_ certificate: OpaquePointer) -> Int64? {
  var calendar = tm()
  guard ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &calendar) == 1 else { return nil }
  let seconds = timegm(&calendar)
  return seconds >= 0 ? Int64(seconds) : nil
}

/// With a clock that is behind, the time is only known not to be earlier: what has expired by then has expired, but
/// what was made later may well be valid.
private func forgiveYouth(verdict: Int32, store: OpaquePointer?) -> Int32 {
  guard verdict == 0, isClockBehind(store), X509_STORE_CTX_get_error(store) == X509_V_ERR_CERT_NOT_YET_VALID else {
    return verdict
  }
  X509_STORE_CTX_set_error(store, X509_V_OK)
  return 1
}

private func isClockBehind(_ store: OpaquePointer?) -> Bool {
  X509_VERIFY_PARAM_get_flags(X509_STORE_CTX_get0_param(store)) & UInt(X509_V_FLAG_USE_CHECK_TIME) != 0
}

private func forgiveUnknownIssuer(verdict: Int32, store: OpaquePointer?) -> Int32 {
  let verdict = forgiveYouth(verdict: verdict, store: store)
  guard verdict == 0, CertificateJudge.unknownIssuer.contains(X509_STORE_CTX_get_error(store)) else { return verdict }
  // OpenSSL goes on to check the dates, but not those of a last certificate whose issuer is missing.
  let dates = verdictOnDates(store)
  X509_STORE_CTX_set_error(store, dates)
  return dates == X509_V_OK ? 1 : 0
}

private func verdictOnDates(_ store: OpaquePointer?) -> Int32 {
  let isClockBehind = isClockBehind(store)
  var moment = isClockBehind ? X509_VERIFY_PARAM_get_time(X509_STORE_CTX_get0_param(store)) : time(nil)
  let chain = X509_STORE_CTX_get0_chain(store)
  for index in 0..<OPENSSL_sk_num(chain) {
    let certificate = OpaquePointer(OPENSSL_sk_value(chain, index))
    // 0 means the date cannot be read, which is as bad.
    let youth = X509_cmp_time(X509_get0_notBefore(certificate), &moment)
    if youth == 0 || youth > 0 && !isClockBehind { return X509_V_ERR_CERT_NOT_YET_VALID }
    if X509_cmp_time(X509_get0_notAfter(certificate), &moment) <= 0 { return X509_V_ERR_CERT_HAS_EXPIRED }
  }
  return X509_V_OK
}

/// The pin this certificate's key would have: base64 of SHA-256 over its SubjectPublicKeyInfo.
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
