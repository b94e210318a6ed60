// SPDX-License-Identifier: Apache-2.0
import Glibc
import NIOSSL
import Synchronization

/// The TLS context for portals, made when the first callback needs it: reading the system's certificate authorities
/// takes time, which a start and a command do not wait for. They are read once.
final class CallbackTLS: Sendable {
  /// The system has none of the files with certificate authorities.
  struct NoAuthoritiesError: Error, CustomStringConvertible {
    let file: String
    var description: String { "found no certificate authorities: install ca-certificates, which makes \(file)" }
  }

  /// The files in which NIOSSL looks for the system's certificate authorities: of Debian, and of Fedora.
  static let systemAuthorities = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"]

  private let settings: TLSConfiguration
  private let authorities: [String]
  private let made = Mutex<NIOSSLContext?>(nil)

  /// - Parameters:
  ///   - settings: the lowest version becomes TLS 1.2.
  ///   - authorities: the files of which one must exist, if `settings` trusts the system's certificate authorities.
  init(_ settings: TLSConfiguration, authorities: [String] = systemAuthorities) {
    var settings = settings
    settings.minimumTLSVersion = .tlsv12
    self.settings = settings
    self.authorities = authorities
  }

  /// - Throws: `NoAuthoritiesError`; each time, until the context can be made.
  func context() throws -> NIOSSLContext {
    try made.withLock { made in
      if let made { return made }
      // NIOSSL looks for the files once in a process, also if there are none.
      if (settings.trustRoots ?? .default) == .default, !authorities.contains(where: { access($0, R_OK) == 0 }) {
        throw NoAuthoritiesError(file: authorities.first ?? "")
      }
      let context = try NIOSSLContext(configuration: settings)
      made = context
      return context
    }
  }
}
