// SPDX-License-Identifier: Apache-2.0
import Hummingbird
import HummingbirdCore
import HummingbirdTLS
import Logging
import NIOCore
import NIOPosix
import NIOSSL
package import ServiceLifecycle
import TokenServerCore

/// The TLS certificate of the server, as PEM files.
package struct ServerCertificate: Sendable {
  let certificateFile: String
  let privateKeyFile: String

  package init(certificateFile: String, privateKeyFile: String) {
    self.certificateFile = certificateFile
    self.privateKeyFile = privateKeyFile
  }
}

extension HTTPInterfaces {
  /// The HTTP server as a service.
  /// - Parameters:
  ///   - maxConnections: the number of connections that the process can have open.
  ///   - listening: called once with the port, when connections are accepted; no request is handled before it returns.
  package func service(
    _ certificate: ServerCertificate, maxConnections: Int, listening: @escaping @Sendable (Int) async -> Void
  ) throws -> any Service {
    let connections = ConnectionTable(
      limit: min(configuration.limits.connections, maxConnections),
      limitPerSource: configuration.limits.connectionsPerSource)
    return HTTPService(
      application: Application(
        router: router(), server: try tlsServer(certificate, connections),
        configuration: .init(address: .hostname(configuration.listen, port: configuration.port), backlog: 4096),
        onServerRunning: { channel in await listening(channel.localAddress?.port ?? 0) },
        eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup.singleton), logger: Logger(label: "http")),
      hub: hub)
  }

  private func tlsServer(_ certificate: ServerCertificate, _ connections: ConnectionTable) throws -> HTTPServerBuilder {
    let chain = try NIOSSLCertificate.fromPEMFile(certificate.certificateFile)
    let key = try NIOSSLPrivateKey(file: certificate.privateKeyFile, format: .pem)
    var tls = TLSConfiguration.makeServerConfiguration(
      certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
    tls.minimumTLSVersion = .tlsv12
    tls.applicationProtocols = ["http/1.1"]
    let limits = configuration.limits
    let http = HTTP1Channel.Configuration(
      additionalChannelHandlers: [ConnectionGuard(table: connections, sources: sources, limits: limits)],
      httpDecoderConfiguration: .init(
        maxHeaderFieldSize: 16 * 1024, maxHeaderListSize: 32 * 1024, maxHeaderFieldCount: 64))
    let balancers = configuration.proxyProtocolFrom
    return HTTPServerBuilder { [sources, tls] responder in
      let channel = EventLoopChannel(
        base: try TLSChannel(HTTP1Channel(responder: responder, configuration: http), tlsConfiguration: tls),
        group: MultiThreadedEventLoopGroup.singleton)
      guard !balancers.isEmpty else { return channel }
      return ProxiedChannel(base: channel, balancers: balancers, sources: sources)
    }
  }
}

/// Its shutdown waits for open responses, so event streams must end first.
private struct HTTPService<Responder: HTTPResponder>: Service
where Responder.Context: InitializableFromSource<ApplicationRequestContextSource> {
  let application: Application<Responder>
  let hub: EventHub

  func run() async throws {
    try await withGracefulShutdownHandler {
      try await application.run()
    } onGracefulShutdown: {
      hub.close()
    }
  }
}
