// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The server's issuer name. With `--port 0` it is known only when the server listens; no request is handled before.
final class Origin: Sendable {
  private let value = Mutex("")

  /// `https://HOST[:PORT]`.
  var issuer: String { value.withLock { $0 } }

  func resolve(_ issuer: String) { value.withLock { $0 = issuer } }
}
