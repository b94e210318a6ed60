// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Hummingbird
import NIOCore
import ReferenceProtocol
import TokenServerCore

/// The context of a request for its handler.
struct ServerContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let channel: any Channel
  /// Set by `OuterMiddleware`.
  var sources: ProxiedSources?

  init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    channel = source.channel
  }

  /// The key of the client's address for rate limits.
  var peer: String { sources?.name(of: channel) ?? ConnectionSource.name(of: channel.remoteAddress?.ipAddress) }

  /// Marks the response as an event stream or a long poll of an authenticated device.
  /// - Parameter hasUser: whether the device has a user. Whoever has a fleet token can register many that have none:
  ///   theirs count for the client's address.
  /// - Throws: `rateLimited` if the address is at its limit of connections; `brokenBody` if the connection has ended.
  func beginStream(hasUser: Bool) async throws {
    do {
      try await channel.triggerUserOutboundEvent(ConnectionGuard.Event.beginsStream(isCounted: !hasUser))
    } catch is ConnectionGuard.SourceLimitError {
      throw DeviceAPIError(.rateLimited, header: .retryAfter(seconds: 60))
    } catch let error as ChannelError {
      // The device has gone meanwhile: then there are no handlers any more.
      if channel.isActive { throw error }
      throw ResponseError.brokenBody
    }
  }

  /// Keeps the connection open for the next requests of an authenticated device.
  func keepConnection(for device: ClientID) {
    channel.triggerUserOutboundEvent(ConnectionGuard.Event.keep(for: device.text), promise: nil)
  }

  /// A path parameter, percent-decoded.
  func path(_ name: String) throws(ResponseError) -> String {
    guard let value = parameters.get(name).flatMap({ percentDecoded($0.utf8) }), !value.isEmpty else {
      throw ResponseError.malformedPath
    }
    return value
  }
}
