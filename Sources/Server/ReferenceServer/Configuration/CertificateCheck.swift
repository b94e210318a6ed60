// SPDX-License-Identifier: Apache-2.0
import COpenSSL
import Glibc
import TokenServerCore

/// What in the server's certificate keeps tokens from connecting: they verify its names and its dates, also if an
/// enrollment URI has a pin.
enum CertificateCheck {
  /// - Parameters:
  ///   - file: a PEM file, whose first certificate counts.
  ///   - issuer: the server's address, `https://HOST[:PORT]`.
  /// - Returns: warnings; none about a file that has no certificate, which is an error elsewhere.
  static func warnings(about file: String, at issuer: String, now: Timestamp) -> [String] {
    defer { ERR_clear_error() }
    guard let input = BIO_new_file(file, "r") else { return [] }
    defer { BIO_free(input) }
    guard let certificate = PEM_read_bio_X509(input, nil, nil, nil) else { return [] }
    defer { X509_free(certificate) }
    var warnings: [String] = []
    let host = host(of: issuer)
    if X509_check_ip_asc(certificate, host, 0) != 1, X509_check_host(certificate, host, host.utf8.count, 0, nil) != 1 {
      warnings.append("the certificate \(file) is not for \(host), the host of \(issuer): tokens refuse it")
    }
    var time = time_t(now.milliseconds / 1000)
    if X509_cmp_time(X509_get0_notAfter(certificate), &time) < 0 {
      warnings.append("the certificate \(file) has expired: tokens refuse it")
    }
    return warnings
  }

  /// The name or address, without the brackets of an IPv6 address.
  static func host(of issuer: String) -> String {
    let authority = issuer.dropFirst("https://".count)
    if authority.first == "[" { return String(authority.dropFirst().prefix { $0 != "]" }) }
    return String(authority.prefix { $0 != ":" && $0 != "/" })
  }
}
