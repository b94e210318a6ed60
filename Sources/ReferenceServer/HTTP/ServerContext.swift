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

  /// Address of the other end, without the port; rate limits count by it.
  var peer: String { channel.remoteAddress?.ipAddress ?? "unknown" }

  /// A member of the path, percent-decoded.
  func path(_ name: String) throws(Refusal) -> String {
    guard let value = parameters.get(name).flatMap({ percentDecoded($0.utf8) }), !value.isEmpty else {
      throw Refusal.malformedPath
    }
    return value
  }
}
