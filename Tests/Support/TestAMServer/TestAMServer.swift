import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import HummingbirdTLS
import Logging
import NIOCore
import NIOSSL
import Synchronization
public import TestAM

/// `TestAM` behind a TLS socket of this machine, one for each realm.
public final class TestAMServer: Sendable {
  private struct State {
    var realms: [TestAM] = []
    var answersToLose = 0
    var isAway = false
  }

  /// What a hurried client saw break off.
  private struct Lost: Error {}

  public let port: Int
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
  ///   - certificate: PEM file, as is `key`.
  public static func start(certificate: String, key: String) async throws -> TestAMServer {
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
    // A token that is killed is no trouble of AM's.
    logger.logLevel = .critical
    let application = Application(
      router: router, server: try .tls(.http1(), tlsConfiguration: tls),
      configuration: .init(address: .hostname("127.0.0.1", port: 0)),
      onServerRunning: { channel in telling.yield(channel.localAddress?.port ?? 0) }, logger: logger)
    let task = Task { try await application.run() }
    for await port in ports { return TestAMServer(port: port, state: shared, task: task) }
    throw CancellationError()
  }

  /// Another realm of this AM, with its own users and its own clock's time.
  public func realm(_ name: String, _ version: TestAM.Version = .am802) -> TestAM {
    let am = TestAM(version, base: "https://127.0.0.1:\(port)/am", realm: name) {
      Int64(Date().timeIntervalSince1970 * 1000)
    }
    state.state.withLock { $0.realms.append(am) }
    return am
  }

  /// The next so many requests are handled, and their answers break off on the way.
  public func loseAnswers(_ count: Int) { state.state.withLock { $0.answersToLose = count } }

  /// A load balancer without an AM behind it: 503 to everything, until it is back.
  public func set(away isAway: Bool) { state.state.withLock { $0.isAway = isAway } }

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
    let isLost = shared.state.withLock { state in
      guard state.answersToLose > 0 else { return false }
      state.answersToLose -= 1
      return true
    }
    let bytes = ByteBuffer(string: answer.body)
    let responseBody =
      isLost
      ? ResponseBody(contentLength: bytes.readableBytes) { _ in throw Lost() } : ResponseBody(byteBuffer: bytes)
    return Response(
      status: .init(code: answer.status), headers: [.contentType: "application/json"], body: responseBody)
  }
}
