// SPDX-License-Identifier: Apache-2.0
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOPosix
import Testing

@testable import TokenServerCore
@testable import TokenServerHTTP

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RefusalTests {
  private static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  /// RFC 9110 §15.5.2.
  @Test("Each 401 names a scheme", arguments: ["/oauth/token", "/device/v1/pending"])
  func challenge(path: String) async throws {
    let requests = try FailingRequests(DeviceLog(Self.silent))
    let response = try await requests.response(
      to: path, throwing: ResponseError(.unauthorized, "invalid_client", "The client is not known."))
    #expect(response.status == .unauthorized)
    #expect(response.headers[.wwwAuthenticate] == #"DPoP algs="ES256""#)
    let own = try await requests.response(
      to: path,
      throwing: ResponseError(.unauthorized, "invalid_token", "Wrong.", headers: [.wwwAuthenticate: "Bearer"]))
    #expect(own.headers[.wwwAuthenticate] == "Bearer")
  }

  /// Fails if a device that gives up while it is admitted looks like a fault of the server.
  @Test("A stream of a connection that has ended is refused as a body that did not arrive") func lostConnection()
    async throws
  {
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).get()
    try await channel.close()
    let context = ServerContext(source: ApplicationRequestContextSource(channel: channel, logger: Self.silent))
    let error = await #expect(throws: ResponseError.self) { try await context.beginStream(hasUser: true) }
    #expect(error?.status == .badRequest)
  }
}
