import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import ReferenceProtocol

/// One `POST` to a portal: which transaction has ended, not how.
struct CallbackDelivery: Sendable {
  enum Outcome: Equatable, Sendable {
    case delivered
    /// 410: the portal does not want to be told any more. Or an address that this server never calls.
    case refusedForGood(String)
    /// The text is for the log.
    case failed(String)
  }

  /// Exactly two members.
  struct Body: Codable, Equatable {
    var callbackURI: String
    var transactionID: String

    enum CodingKeys: String, CodingKey {
      case callbackURI = "callback_uri"
      case transactionID = "transaction_id"
    }
  }

  let client: HTTPClient
  let configured: [ServerConfiguration.Callback]

  /// The address that the portal's name led to is one that only this server can reach, and no setting allows it.
  struct AddressRefused: Error, CustomStringConvertible {
    let address: String
    var description: String {
      "the address \(address) is loopback, link-local or private, and not in callback_private_addresses"
    }
  }

  /// - Parameter allowed: private addresses that may be called.
  init(
    configured: [ServerConfiguration.Callback], allowed: [AddressRange], eventLoopGroup: any EventLoopGroup
  ) {
    var configuration = HTTPClient.Configuration(
      redirectConfiguration: .disallow, timeout: .init(connect: .seconds(5)), decompression: .disabled)
    configuration.httpVersion = .http1Only
    // The schedule tries again, and later.
    configuration.connectionPool.retryConnectionEstablishment = false
    // On the connection itself, after the name was resolved and before a request is sent: a name that leads elsewhere the
    // second time gains nothing.
    configuration.http1_1ConnectionDebugInitializer = { channel in
      let address = channel.remoteAddress?.ipAddress ?? "unknown"
      guard Self.mayCall(address, allowed) else {
        channel.close(promise: nil)
        return channel.eventLoop.makeFailedFuture(AddressRefused(address: address))
      }
      return channel.eventLoop.makeSucceededVoidFuture()
    }
    client = HTTPClient(eventLoopGroupProvider: .shared(eventLoopGroup), configuration: configuration)
    self.configured = configured
  }

  /// - Parameter allowed: private addresses that may be called.
  static func mayCall(_ address: String, _ allowed: [AddressRange]) -> Bool {
    // A link-local address may have its interface behind it.
    guard let bytes = IPAddressBytes.parse(String(address.prefix { $0 != "%" })) else { return false }
    let plain = PrivateAddress.withoutEmbedding(bytes)
    return !PrivateAddress.contains(plain) || allowed.contains { $0.contains(plain) || $0.contains(bytes) }
  }

  func deliver(_ job: CallbackJob) async -> Outcome {
    // Stored long ago, perhaps by an earlier version: judged again before the client sees it.
    guard CallbackURL.isAcceptable(job.url) else { return .refusedForGood("its URL is not acceptable") }
    var request = HTTPClientRequest(url: job.url)
    request.method = .POST
    request.headers = ["Content-Type": "application/json;charset=UTF-8"]
    if let authorization = configured.first(where: { $0.url == job.url })?.authorization {
      request.headers.add(name: "Authorization", value: authorization)
    }
    request.body = .bytes(
      ByteBuffer(bytes: JSON.encode(Body(callbackURI: job.url, transactionID: job.transactionID))))
    do {
      let response = try await client.execute(request, timeout: .seconds(10))
      // Read, so that the connection can be used again; a portal that talks on and on is hung up on.
      _ = try? await response.body.collect(upTo: 16 * 1024)
      switch response.status.code {
      case 200..<300: return .delivered
      case 410: return .refusedForGood("HTTP 410")
      case let code: return .failed("HTTP \(code)")
      }
    } catch { return .failed("\(error)") }
  }
}
