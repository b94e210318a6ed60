import Synchronization

/// What the server calls itself. With `--port 0` that is known only once it listens, and no request is handled before.
final class Origin: Sendable {
  private let value = Mutex("")

  /// `https://HOST[:PORT]`.
  var issuer: String { value.withLock { $0 } }

  func settle(_ issuer: String) { value.withLock { $0 = issuer } }
}
