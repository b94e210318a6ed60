// SPDX-License-Identifier: Apache-2.0
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import HummingbirdTLS
import Logging
import NIOCore
import NIOSSL
import Synchronization
package import TestAM

/// `TestAM` behind a TLS server on the loopback interface, one for each realm.
package final class TestAMServer: Sendable {
  private struct State {
    var realms: [TestAM] = []
    var answersToLose = 0
    var whenLost: @Sendable () -> Void = {}
    var isAway = false
  }

  /// The errors of connections that a client closed early.
  private struct ConnectionLostError: Error {}

  package let port: Int
  private let state: Shared
  private let task: Task<Void, any Error>

  private final class Shared: Sendable {
    let state = Mutex(State())
  }

  private init(port: Int, state: Shared, task: Task<Void, any Error>) {
    self.port = port
    self.state = state
    self.task = task
  }

  deinit { task.cancel() }

  /// - Parameters:
  ///   - certificate: a PEM file, like `key`.
  package static func start(certificate: String, key: String) async throws -> TestAMServer {
    let shared = Shared()
    let tls = TLSConfiguration.makeServerConfiguration(
      certificateChain: try NIOSSLCertificate.fromPEMFile(certificate).map { .certificate($0) },
      privateKey: .privateKey(try NIOSSLPrivateKey(file: key, format: .pem)))
    let router = Router()
    for method in [HTTPRequest.Method.post, .get, .put, .patch, .delete] {
      router.on("/am/json/**", method: method) { request, _ in try await respond(to: request, shared) }
    }
    let (ports, telling) = AsyncStream.makeStream(of: Int.self)
    var logger = Logger(label: "test-am")
    // A token that is killed does not cause an error of AM.
    logger.logLevel = .critical
    let application = Application(
      router: router, server: try .tls(.http1(), tlsConfiguration: tls),
      configuration: .init(address: .hostname("127.0.0.1", port: 0)),
      onServerRunning: { channel in telling.yield(channel.localAddress?.port ?? 0) }, logger: logger)
    let task = Task { try await application.run() }
    for await port in ports { return TestAMServer(port: port, state: shared, task: task) }
    throw CancellationError()
  }

  /// Another realm of this AM, with its own users and clock. It waits longer than AM does: the machine may be busy.
  package func realm(_ name: String, _ version: TestAM.Version = .am802) -> TestAM {
    let am = TestAM(
      version, base: "https://127.0.0.1:\(port)/am", realm: name, lifetime: 1200, registrationTimeout: 1200
    ) { Int64(Date().timeIntervalSince1970 * 1000) }
    state.state.withLock { $0.realms.append(am) }
    return am
  }

  /// The given number of next requests are handled, and their responses are interrupted.
  /// - Parameter act: called between the two, once for each request.
  package func loseAnswers(_ count: Int, _ act: @escaping @Sendable () -> Void = {}) {
    state.state.withLock { ($0.answersToLose, $0.whenLost) = (count, act) }
  }

  /// Simulates a load balancer without an AM: status 503 for every request, until AM is back.
  package func set(away isAway: Bool) { state.state.withLock { $0.isAway = isAway } }

  private static func respond(to request: Request, _ shared: Shared) async throws -> Response {
    let (realms, isAway) = shared.state.withLock { ($0.realms, $0.isAway) }
    if isAway { return Response(status: .serviceUnavailable) }
    var headers: [String: String] = [:]
    for field in request.headers { headers[field.name.canonicalName] = field.value }
    let body = try await request.body.collect(upTo: 65_536)
    let target = request.uri.description
    let answers = realms.lazy.map { realm in
      realm.respond(
        method: request.method.rawValue, target: target, headers: headers, body: Array(body.readableBytesView))
    }
    let answer = answers.first { $0.status != 404 } ?? .notFound
    let whenLost = shared.state.withLock { state -> (@Sendable () -> Void)? in
      guard state.answersToLose > 0 else { return nil }
      state.answersToLose -= 1
      return state.whenLost
    }
    whenLost?()
    let bytes = ByteBuffer(string: answer.body)
    let responseBody =
      whenLost != nil
      ? ResponseBody(contentLength: bytes.readableBytes) { _ in throw ConnectionLostError() }
      : ResponseBody(byteBuffer: bytes)
    return Response(
      status: .init(code: answer.status), headers: [.contentType: "application/json"], body: responseBody)
  }
}
