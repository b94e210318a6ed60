// SPDX-License-Identifier: Apache-2.0
import HTTPTypes
import Hummingbird
import HummingbirdCore
import JSONValues
import Logging
import NIOCore
import ServiceLifecycle

/// The page and its calls, over HTTP on the loopback interface.
struct PageServer: Sendable {
  static let largestBody = 256 << 10
  /// Of a request without the session's secrets.
  static let largestSessionBody = 1 << 10
  static let mostConnections = 64

  /// What the page can do: the body of the call, to the answer for the page.
  typealias Calls = [String: @Sendable (JSONValue) async throws -> JSONValue]

  let access: Access
  let files: PageFiles
  let feed: Feed
  let calls: Calls
  /// The OpenAPI description of the portal API.
  let description: @Sendable () async throws -> JSONValue

  /// - Parameter port: where to listen; the one in `access`.
  func application(port: Int) -> some ApplicationProtocol {
    Application(
      router: router(),
      server: .http1(
        configuration: .init(
          idleTimeout: .seconds(60),
          httpDecoderConfiguration: .init(
            maxHeaderFieldSize: 8 << 10, maxHeaderListSize: 16 << 10, maxHeaderFieldCount: 64))),
      configuration: .init(
        address: .hostname("127.0.0.1", port: port), serverName: nil, backlog: 64,
        availableConnectionsDelegate: MaximumAvailableConnections(Self.mostConnections)),
      // What it would report are connections that the end of the bench has closed.
      logger: Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() })
  }

  private func router() -> Router<PageContext> {
    let router = Router(context: PageContext.self)
    router.add(middleware: PageRules(access: access))
    for path in files.paths {
      router.get(RouterPath(path)) { _, _ in
        guard let file = files[path] else { throw HTTPError(.notFound) }
        return Response.of(file.bytes, file.type)
      }
    }
    router.post("/session") { request, _ in
      let body = try await request.json(atMost: Self.largestSessionBody)
      guard let token = body["token"]?.text, access.isToken(token) else {
        throw HTTPError(.forbidden)
      }
      var response = Response.json(.object(["key": .text(access.key)]))
      response.headers[.setCookie] = access.cookie
      return response
    }
    router.post("/callback/:token") { request, context in
      guard let token = context.parameters.get("token"), access.isCallbackToken(token) else {
        throw HTTPError(.forbidden)
      }
      feed.publish(.callback, try await request.json())
      return Response(status: .noContent)
    }
    router.get("/feed") { request, context in
      try access.checkSession(Access.Claims(request))
      return try stream(after: request.headers[.lastEventID].flatMap { Int($0) } ?? 0, context)
    }
    router.get("/portal-api.openapi.json") { request, _ in
      // A link has no key; the description is the same for everybody.
      try access.checkCookie(Access.Claims(request))
      return Response.json(try await description())
    }
    for (path, call) in calls {
      router.post(RouterPath("/" + path)) { request, _ in
        try access.checkSession(Access.Claims(request))
        return Response.json(try await call(try await request.json()))
      }
    }
    return router
  }

  private func stream(after number: Int, _ context: PageContext) throws -> Response {
    guard let entries = feed.entries(after: number) else { throw HTTPError(.serviceUnavailable) }
    // When the browser disconnects, the loop below ends.
    context.channel.closeFuture.whenComplete { _ in entries.cancel() }
    let body = ResponseBody { writer in
      defer { entries.cancel() }
      try await writer.write(ByteBuffer(string: ": \n\n"))
      for await frame in entries.frames { try await writer.write(ByteBuffer(string: frame.text)) }
      try await writer.finish(nil)
    }
    return Response(
      status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"], body: body)
  }
}

/// The context of a request, with its connection.
struct PageContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let channel: any Channel

  init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    channel = source.channel
  }
}

/// Checks where each request comes from, and adds the rules for the browser to each response.
private struct PageRules: RouterMiddleware {
  let access: Access

  func handle(
    _ request: Request, context: PageContext, next: (Request, PageContext) async throws -> Response
  ) async throws -> Response {
    var response: Response
    do {
      // The token server calls back; it is no browser, and has a secret of its own in the path.
      let isCallback = request.uri.path.hasPrefix("/callback/")
      try access.checkOrigin(Access.Claims(request), changes: request.method != .get && !isCallback)
      response = try await next(request, context)
    } catch let error as Access.AccessError {
      response = .error(.forbidden, "\(error)")
    } catch let error as HTTPError {
      response = .error(error.status, error.body ?? error.status.reasonPhrase)
    } catch {
      response = .error(.conflict, "\(error)")
    }
    for (name, value) in Self.headers { response.headers[name] = value }
    return response
  }

  private static let headers: [(HTTPField.Name, String)] = [
    (
      .contentSecurityPolicy,
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    (.xContentTypeOptions, "nosniff"), (.cacheControl, "no-store"), (.init("Referrer-Policy")!, "no-referrer"),
    (.init("Cross-Origin-Opener-Policy")!, "same-origin"), (.init("Cross-Origin-Resource-Policy")!, "same-origin"),
  ]
}

extension Access.Claims {
  init(_ request: Request) {
    self.init(
      host: request.head.authority, origin: request.headers[.origin], site: request.headers[.init("Sec-Fetch-Site")!],
      cookie: request.headers[.cookie],
      key: request.headers[.init("Bench-Key")!] ?? request.uri.queryParameters["key"].map(String.init),
      isNavigation: request.headers[.init("Sec-Fetch-Mode")!] == "navigate"
        && request.headers[.init("Sec-Fetch-Dest")!] == "document")
  }
}

extension Request {
  /// The body, which is one JSON object, or nothing. One that says that it is longer is not read.
  fileprivate func json(atMost limit: Int = PageServer.largestBody) async throws -> JSONValue {
    guard headers[.contentLength].flatMap({ Int($0) }) ?? 0 <= limit else { throw HTTPError(.contentTooLarge) }
    let bytes: [UInt8]
    do { bytes = Array(buffer: try await body.collect(upTo: limit)) } catch {
      throw HTTPError(.contentTooLarge)
    }
    guard let value = bytes.isEmpty ? .object([:]) : JSONValue(parsing: bytes, levels: 4), case .object = value else {
      throw HTTPError(.badRequest, message: "not a JSON object")
    }
    return value
  }
}

extension Response {
  fileprivate static func of(_ bytes: [UInt8], _ type: String) -> Response {
    Response(
      status: .ok, headers: [.contentType: type], body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
  }

  fileprivate static func json(_ value: JSONValue, status: HTTPResponse.Status = .ok) -> Response {
    Response(
      status: status, headers: [.contentType: "application/json"],
      body: ResponseBody(byteBuffer: ByteBuffer(string: value.canonical)))
  }

  fileprivate static func error(_ status: HTTPResponse.Status, _ text: String) -> Response {
    json(.object(["error": .text(String(text.prefix(500)))]), status: status)
  }
}

extension HTTPField.Name {
  fileprivate static let lastEventID = Self("Last-Event-ID")!
}
