import Cryptography
import Hummingbird
import NIOCore

/// What a handler knows of a request beside the request itself.
struct ServerContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let channel: any Channel

  init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    channel = source.channel
  }

  /// Who the other end is to rate limits.
  var peer: String { ConnectionSource.name(of: channel.remoteAddress?.ipAddress) }

  /// What follows is an event stream or a long poll of a device that was let in.
  func beginStream() async throws {
    try await channel.triggerUserOutboundEvent(ConnectionGuard.Event.beginsStream)
  }

  /// A member of the path, percent-decoded.
  func path(_ name: String) throws(Refusal) -> String {
    guard let value = parameters.get(name).flatMap({ percentDecoded($0.utf8) }), !value.isEmpty else {
      throw Refusal.malformedPath
    }
    return value
  }
}
