import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import ReferenceProtocol

/// One `POST` to a portal. It names the transaction that ended, but not its result.
struct CallbackDelivery: Sendable {
  enum Outcome: Equatable, Sendable {
    case delivered
    /// Permanent failure: HTTP 410 (the portal unsubscribes), or an address that this server never calls.
    case refusedForGood(String)
    /// A failed attempt, to be retried; the text is for the log.
    case failed(String)
  }

  /// The JSON body: exactly two members.
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

  /// The portal's host name resolved to a private address that `callback_private_addresses` does not allow.
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
    // Retries are scheduled by `CallbackSchedule`, not by the HTTP client.
    configuration.connectionPool.retryConnectionEstablishment = false
    // Check the address on the connection itself, after name resolution and before a request is sent. A DNS name that
    // resolves to another address the second time (DNS rebinding) cannot bypass this check.
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
    // A link-local address may end in `%` and an interface name.
    guard let bytes = IPAddressBytes.parse(String(address.prefix { $0 != "%" })) else { return false }
    let plain = PrivateAddress.withoutEmbedding(bytes)
    return !PrivateAddress.contains(plain) || allowed.contains { $0.contains(plain) || $0.contains(bytes) }
  }

  func deliver(_ job: CallbackJob) async -> Outcome {
    // Check the stored URL again: an earlier version may have stored it.
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
      // Read the body so that the connection can be reused; a longer body closes the connection.
      _ = try? await response.body.collect(upTo: 16 * 1024)
      switch response.status.code {
      case 200..<300: return .delivered
      case 410: return .refusedForGood("HTTP 410")
      case let code: return .failed("HTTP \(code)")
      }
    } catch { return .failed("\(error)") }
  }
}
