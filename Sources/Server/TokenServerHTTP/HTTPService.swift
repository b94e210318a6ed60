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

  /// What is wrong with the files, with the setting and the remedy.
  package struct CertificateError: Error, Equatable, CustomStringConvertible {
    package let description: String
  }

  package init(certificateFile: String, privateKeyFile: String) {
    self.certificateFile = certificateFile
    self.privateKeyFile = privateKeyFile
  }

  /// - Throws: `CertificateError`
  fileprivate func configuration() throws -> TLSConfiguration {
    guard let chain = try? NIOSSLCertificate.fromPEMFile(certificateFile), !chain.isEmpty else {
      throw CertificateError(
        description: "\(certificateFile), which is tls.certificate, must have certificates in PEM: "
          + "the server's first, then those of its authorities")
    }
    guard let key = try? NIOSSLPrivateKey(file: privateKeyFile, format: .pem) else {
      throw CertificateError(
        description: "\(privateKeyFile), which is tls.key, must have a private key in PEM without a passphrase")
    }
    var tls = TLSConfiguration.makeServerConfiguration(
      certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
    tls.minimumTLSVersion = .tlsv12
    tls.applicationProtocols = ["http/1.1"]
    // How long a closed connection waits for the client's close_notify. A client need not send one, and the end of the
    // server must not wait for it.
    tls.shutdownTimeout = .milliseconds(200)
    do { _ = try NIOSSLContext(configuration: tls) } catch {
      throw CertificateError(
        description: "the key in \(privateKeyFile) (tls.key) does not belong to the first certificate in "
          + "\(certificateFile) (tls.certificate)")
    }
    return tls
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
    let tls = try certificate.configuration()
    let limits = configuration.limits
    let http = HTTP1Channel.Configuration(
      additionalChannelHandlers: [ConnectionGuard(table: connections, sources: sources, limits: limits)],
      httpDecoderConfiguration: .init(
        maxHeaderFieldSize: 16 * 1024, maxHeaderListSize: 32 * 1024, maxHeaderFieldCount: 64))
    let balancers = configuration.proxyProtocolFrom
    return HTTPServerBuilder { [sources, tls, readiness] responder in
      let channel = EventLoopChannel(
        base: try TLSChannel(
          FramedChannel(
            base: HTTP1Channel(responder: responder, configuration: http), largestBody: Request.largestBody,
            readiness: readiness),
          tlsConfiguration: tls),
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
