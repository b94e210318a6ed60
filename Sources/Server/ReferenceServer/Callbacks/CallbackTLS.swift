// SPDX-License-Identifier: Apache-2.0
import NIOSSL
import Synchronization

/// The TLS context for portals, version 1.2 or later, made when the first callback needs it: reading the system's
/// certificate authorities takes time, which a start and a command do not wait for.
final class CallbackTLS: Sendable {
  let settings: TLSConfiguration
  private let made = Mutex<NIOSSLContext?>(nil)

  struct UnusableAuthoritiesError: Error, CustomStringConvertible {
    let description: String
  }

  init(_ settings: TLSConfiguration) {
    var settings = settings
    settings.minimumTLSVersion = .tlsv12
    self.settings = settings
  }

  /// - Throws: `UnusableAuthoritiesError` if the context cannot be made. The next call tries again.
  func context() throws(UnusableAuthoritiesError) -> NIOSSLContext {
    do {
      return try made.withLock { made in
        if let made { return made }
        let context = try NIOSSLContext(configuration: settings)
        made = context
        return context
      }
    } catch {
      throw UnusableAuthoritiesError(
        description: "the system has no certificate authorities that can be used (Debian: ca-certificates): \(error)")
    }
  }
}
