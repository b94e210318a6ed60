import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import ReferenceProtocol

/// One `POST` to a portal: which transaction has ended, not how.
struct CallbackDelivery: Sendable {
  enum Outcome: Equatable, Sendable {
    case delivered
    /// 410: the portal does not want to be told any more.
    case refusedForGood
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

  init(configured: [ServerConfiguration.Callback], eventLoopGroup: any EventLoopGroup) {
    var configuration = HTTPClient.Configuration(
      redirectConfiguration: .disallow, timeout: .init(connect: .seconds(5)), decompression: .disabled)
    configuration.httpVersion = .http1Only
    client = HTTPClient(eventLoopGroupProvider: .shared(eventLoopGroup), configuration: configuration)
    self.configured = configured
  }

  func deliver(_ job: CallbackJob) async -> Outcome {
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
      case 410: return .refusedForGood
      case let code: return .failed("HTTP \(code)")
      }
    } catch { return .failed("\(error)") }
  }
}
