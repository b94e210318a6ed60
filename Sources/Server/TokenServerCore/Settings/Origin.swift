// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The server's issuer name. With `--port 0` it is known only when the server listens; no request is handled before.
package final class Origin: Sendable {
  private let value = Mutex("")

  package init() {}

  /// `https://HOST[:PORT]`.
  package var issuer: String { value.withLock { $0 } }

  package func resolve(_ issuer: String) { value.withLock { $0 = issuer } }
}
