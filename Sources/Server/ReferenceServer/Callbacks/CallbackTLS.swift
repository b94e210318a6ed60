// SPDX-License-Identifier: Apache-2.0
import NIOSSL
import Synchronization

/// The TLS context for portals, made when the first callback needs it: reading the system's certificate authorities
/// takes time, which a start and a command do not wait for.
final class CallbackTLS: Sendable {
  private let settings: TLSConfiguration
  private let made = Mutex<Result<NIOSSLContext, any Error>?>(nil)

  init(_ settings: TLSConfiguration) { self.settings = settings }

  /// - Throws: each time, if the context cannot be made.
  func context() throws -> NIOSSLContext {
    try made.withLock { made in
      let result = made ?? Result { try NIOSSLContext(configuration: settings) }
      made = result
      return result
    }.get()
  }
}
