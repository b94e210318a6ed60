// SPDX-License-Identifier: Apache-2.0
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOEmbedded

@testable import TokenServerCore
@testable import TokenServerHTTP
@testable import TokenServerStore

/// Requests whose handlers throw errors, in this process.
struct FailingRequests {
  private let temporary: TemporaryStore
  private let middleware: OuterMiddleware

  /// - Parameter log: gets the lines about the errors.
  init(_ log: DeviceLog) throws {
    temporary = try TemporaryStore()
    let origin = Origin()
    origin.resolve("https://h")
    let keyring = ServerKeyring(store: temporary.store.records, hasher: temporary.hasher)
    middleware = OuterMiddleware(
      origin: origin, nonces: EventHub().nonces,
      revocations: Revocations(store: temporary.store.records, keyring: keyring, origin: origin),
      sources: ProxiedSources(), allowed: AllowedMethods(), logsAccess: false, log: log)
  }

  /// - Parameter sender: the device that has sent the request; nil for a client that is not authenticated.
  func response(to path: String, of sender: ClientID? = nil, throwing error: any Error) async throws -> Response {
    let router = Router(context: ServerContext.self)
    router.add(middleware: middleware)
    router.get(RouterPath(path)) { _, _ -> Response in
      if let sender { RequestSender.authenticated(as: sender) }
      throw error
    }
    return try await router.buildResponder().response(path)
  }
}

extension RouterResponder<ServerContext> {
  /// The response to a request with the method GET, or another one.
  func response(
    _ path: String, method: HTTPRequest.Method = .get, headers: HTTPFields = [:], body: ByteBuffer = ByteBuffer()
  ) async throws -> Response {
    let request = Request(
      head: HTTPRequest(method: method, scheme: "https", authority: "h", path: path, headerFields: headers),
      body: RequestBody(buffer: body))
    let source = ApplicationRequestContextSource(
      channel: EmbeddedChannel(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    return try await respond(to: request, context: ServerContext(source: source))
  }
}
