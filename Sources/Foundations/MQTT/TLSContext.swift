// SPDX-License-Identifier: Apache-2.0
import COpenSSL
import CTLS
import CertificateTrust
import HTTP

/// The TLS configuration of a broker connection: version 1.2 or newer, and certificate verification by `ServerTrust`.
final class TLSContext {
  /// An `SSL_CTX`.
  let context: OpaquePointer
  let certificateVerifier: CertificateVerifier

  init(host: String, trust: ServerTrust) throws(BrokerError) {
    guard let context = SSL_CTX_new(TLS_client_method()) else { throw .unusable("OpenSSL has no memory") }
    self.context = context
    certificateVerifier = CertificateVerifier(trust: trust, pinEnforcement: .here)
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
    // OpenSSL reads only the needed issuer from the directory; the bundle would load 140 certificates into memory.
    SSL_CTX_set_default_verify_dir(context)
    if let file = trust.authorityFile, SSL_CTX_load_verify_file(context, file) != 1 {
      ERR_clear_error()
      throw .unusable("\(file) is not a readable file with a certificate")
    }
    // OpenSSL compares an address with the certificate's addresses, and a name with its names.
    let wanted = SSL_CTX_get0_param(context)
    guard X509_VERIFY_PARAM_set1_ip_asc(wanted, host) == 1 || X509_VERIFY_PARAM_set1_host(wanted, host, 0) == 1 else {
      throw .unusable("host \"\(host)\"")
    }
    X509_VERIFY_PARAM_set_hostflags(wanted, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
    certificateVerifier.install(over: context)
  }

  deinit { SSL_CTX_free(context) }
}
