// SPDX-License-Identifier: Apache-2.0
import CoreMetrics
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
package import ServiceLifecycle
import Synchronization
package import TokenServerCore
package import TokenServerMetrics
package import TokenServerStore

/// Health checks and metrics, for load balancers and monitoring: over HTTP without TLS, on an address of its own.
package struct OperationsInterface: Sendable {
  let store: Store
  let hub: EventHub
  let readiness: Readiness
  let registry: PrometheusRegistry
  let clock: ServerClock
  private let countsAsRunning: @Sendable () -> Bool
  private let gauges = Gauges()

  /// Whether a request for metrics reads from the database.
  private final class Gauges: Sendable {
    let areRead = Atomic(false)
  }

  /// - Parameter countsAsRunning: whether the other servers on the database take this one for running.
  package init(
    store: Store, hub: EventHub, readiness: Readiness, registry: PrometheusRegistry, clock: ServerClock,
    countsAsRunning: @escaping @Sendable () -> Bool
  ) {
    self.store = store
    self.hub = hub
    self.readiness = readiness
    self.registry = registry
    self.clock = clock
    self.countsAsRunning = countsAsRunning
  }

  /// The HTTP server as a service.
  /// - Parameter listening: called once with the port, when connections are accepted.
  package func service(
    _ settings: TokenServerCore.ServerConfiguration.Operations, listening: @escaping @Sendable (Int) -> Void
  ) -> any Service {
    // Health checks and a few monitors.
    let connections = ConnectionTable(limit: 64, limitPerSource: 32, isMeasured: false)
    let limits = TokenServerCore.ServerConfiguration.Limits(requestSeconds: 10, idleSeconds: 60)
    let http = HTTP1Channel.Configuration(
      additionalChannelHandlers: [ConnectionGuard(table: connections, limits: limits)])
    return Application(
      router: router(),
      server: HTTPServerBuilder { responder in
        FramedChannel(
          base: HTTP1Channel(responder: responder, configuration: http), largestBody: Request.largestBody,
          readiness: readiness)
      },
      configuration: .init(address: .hostname(settings.listen, port: settings.port)),
      onServerRunning: { channel in listening(channel.localAddress?.port ?? 0) },
      eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup.singleton), logger: Logger(label: "operations"))
  }

  func router() -> Router<BasicRequestContext> {
    let allowed = AllowedMethods()
    let router = Router(options: .autoGenerateHeadEndpoints)
    router.add(middleware: AllowMiddleware(allowed: allowed))
    router.get("/healthz") { _, _ in Self.text("ok") }
    router.get("/readyz") { _, _ in await ready() }
    router.get("/metrics") { _, _ in
      await updateGauges()
      return Self.text(registry.text(ServerMetrics.descriptions), mediaType: PrometheusRegistry.mediaType)
    }
    allowed.learn(router, withHead: true)
    return router
  }

  func ready() async -> Response {
    guard readiness.state == .ready else { return Self.text(readiness.state.rawValue, status: .serviceUnavailable) }
    do { _ = try await store.readBesideRequests { try $0.openTransactionCount() } } catch {
      return Self.text("the database cannot be read", status: .serviceUnavailable)
    }
    // A database that several servers share can become a standby, which can only be read. If it waits for a standby
    // that is away, a transaction that changes nothing ends, and no heartbeat is stored.
    if store.sharedBy != nil {
      let canChange: Void? = try? await store.writeBesideRequests { try $0.changeNothing() }
      guard canChange != nil, countsAsRunning() else {
        return Self.text("the database cannot be changed", status: .serviceUnavailable)
      }
    }
    return Self.text("ready")
  }

  /// Reads the values that exist only at a moment. What cannot be read, or not soon, keeps its value: metrics are
  /// needed most while the database does not answer.
  private func updateGauges() async {
    let connected = hub.connected
    set("token_server_devices_connected", connected.streams, [("by", "stream")])
    set("token_server_devices_connected", connected.polls, [("by", "poll")])
    set("token_server_database_waiting", store.waiting)
    if let difference = store.clockDifference {
      registry.makeMeter(label: "token_server_clock_difference_seconds", dimensions: [])
        .set(Double(difference.milliseconds) / 1000)
    }
    if let connections = store.connections {
      set("token_server_database_connections", connections.used, [("state", "used")])
      set("token_server_database_connections", connections.idle, [("state", "idle")])
    }
    guard !gauges.areRead.exchange(true, ordering: .acquiringAndReleasing) else { return }
    let (done, end) = AsyncStream.makeStream(of: Never.self)
    // Goes on after the response.
    Task {
      await readGauges()
      gauges.areRead.store(false, ordering: .releasing)
      end.finish()
    }
    let alarm = Task {
      try await Task.sleep(for: .seconds(2))
      end.finish()
    }
    for await _ in done {}
    alarm.cancel()
  }

  private func readGauges() async {
    if let counts = try? await store.read({ database in
      (open: try database.openTransactionCount(), callbacks: try database.waitingCallbackCount())
    }) {
      set("token_server_transactions_open", counts.open)
      set("token_server_callbacks_waiting", counts.callbacks)
    }
    // By itself: not every database that speaks PostgreSQL's protocol knows its size.
    if let bytes = try? await store.read({ try $0.size() }) { set("token_server_database_bytes", bytes) }
  }

  private func set(_ name: String, _ value: Int, _ labels: [(String, String)] = []) {
    registry.makeMeter(label: name, dimensions: labels).set(Int64(value))
  }

  private static func text(
    _ text: String, status: HTTPResponse.Status = .ok, mediaType: String = "text/plain; charset=utf-8"
  ) -> Response {
    Response(
      status: status, headers: [.contentType: mediaType, .cacheControl: "no-store"],
      body: .init(byteBuffer: ByteBuffer(string: text.hasSuffix("\n") ? text : text + "\n")))
  }
}

/// Replaces 404 by 405 at a path that has other methods.
private struct AllowMiddleware: RouterMiddleware {
  typealias Context = BasicRequestContext

  let allowed: AllowedMethods

  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    guard request.uri.path.isExactPath else { throw HTTPError(.notFound) }
    do { return try await next(request, context) } catch let error as HTTPError where error.status == .notFound {
      guard let methods = allowed.value(for: request.uri.path) else { throw error }
      return Response(status: .methodNotAllowed, headers: [.allow: methods])
    }
  }
}
