// SPDX-License-Identifier: Apache-2.0
import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import Testing

@testable import ReferenceServer
@testable import TokenServerCore
@testable import TokenServerStore

/// TLS with portals.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CallbackTLSTests {
  /// Answers each callback with 204.
  private final class Portal: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      // The end of the JSON.
      guard unwrapInboundIn(data).readableBytesView.last == UInt8(ascii: "}") else { return }
      let response = ByteBuffer(string: "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
      context.writeAndFlush(wrapOutboundOut(response), promise: nil)
    }
  }

  /// A portal for `localhost`, with a latest version of TLS.
  private func listen(_ latest: TLSVersion, _ made: CertificateMaker.Certificates) async throws -> any Channel {
    var settings = TLSConfiguration.makeServerConfiguration(
      certificateChain: [.certificate(try NIOSSLCertificate(bytes: Array(made.server.utf8), format: .pem))],
      privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(made.serverKey.utf8), format: .pem)))
    settings.maximumTLSVersion = latest
    let context = try NIOSSLContext(configuration: settings)
    return try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
          try channel.pipeline.syncOperations.addHandler(Portal())
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
  }

  @Test("A portal needs TLS 1.2", arguments: [TLSVersion.tlsv11, .tlsv12])
  func versions(latest: TLSVersion) async throws {
    let made = try CertificateMaker.make(hosts: [])
    let portal = try await listen(latest, made)
    let temporary = try TemporaryStore()
    let port = try #require(portal.localAddress?.port)
    let url = "https://127.0.0.1:\(port)/"
    try await temporary.store.write { try $0.insertCallback("t", url: url, of: "portal", dueAt: Timestamp(1)) }
    let job = try #require(
      try await temporary.store.read { try $0.callbacks(dueBy: Timestamp(1), without: [], limit: 1) }.first)
    var trust = TLSConfiguration.makeClientConfiguration()
    trust.trustRoots = .certificates([try NIOSSLCertificate(bytes: Array(made.authority.utf8), format: .pem)])
    let delivery = CallbackDelivery(
      configured: [], allowed: ["127.0.0.1"].compactMap { AddressRange($0) },
      eventLoopGroup: MultiThreadedEventLoopGroup.singleton, trust: trust)
    var outcome = await delivery.deliver(job)
    // On a busy machine one may time out.
    for _ in 1...2 where outcome == .failed("\(CallbackConnection.TimeoutError())") {
      outcome = await delivery.deliver(job)
    }
    #expect((outcome == .delivered) == (latest == .tlsv12), "\(outcome)")
    if case .failed(let why) = outcome { #expect(why.contains("PROTOCOL"), "\(why)") }
    try await portal.close().get()
  }

  @Test("Without certificate authorities the error says so, until there are some") func authorities() throws {
    let file = NSTemporaryDirectory() + "authorities-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: file) }
    let tls = CallbackTLS(.makeClientConfiguration(), authorities: [file])
    for _ in 1...2 {
      let error = #expect(throws: CallbackTLS.NoAuthoritiesError.self) { _ = try tls.context() }
      #expect(error?.description.contains("found no certificate authorities: install ca-certificates") == true)
    }
    try ServerDirectory.write([], to: file)
    let context = try tls.context()
    #expect(try tls.context() === context)
    let own = try CertificateMaker.make(hosts: [])
    var settings = TLSConfiguration.makeClientConfiguration()
    settings.trustRoots = .certificates([try NIOSSLCertificate(bytes: Array(own.authority.utf8), format: .pem)])
    _ = try CallbackTLS(settings, authorities: []).context()
  }
}
