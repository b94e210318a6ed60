// SPDX-License-Identifier: Apache-2.0
import NIOCore
import NIOHTTP1
import NIOSSL
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

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

  private let connection: CallbackConnection
  private let configured: [ServerConfiguration.Callback]

  /// - Parameters:
  ///   - allowed: private addresses that may be called.
  ///   - trust: the TLS settings for portals with `https`.
  init(
    configured: [ServerConfiguration.Callback], allowed: [AddressRange], eventLoopGroup: any EventLoopGroup,
    trust: TLSConfiguration = .makeClientConfiguration()
  ) {
    connection = CallbackConnection(
      allowed: allowed, group: eventLoopGroup, tls: CallbackTLS(trust))
    self.configured = configured
  }

  func deliver(_ job: CallbackJob) async -> Outcome {
    // Stored long ago, perhaps by an earlier version: judged again before the client sees it.
    guard let url = try? CallbackURL(parsing: job.url) else { return .refusedForGood("its URL is not acceptable") }
    var headers: HTTPHeaders = ["Content-Type": "application/json;charset=UTF-8"]
    if let authorization = configured.first(where: { $0.url == job.url })?.authorization {
      headers.add(name: "Authorization", value: authorization)
    }
    let body = JSON.encode(Body(callbackURI: job.url, transactionID: job.transactionID))
    do {
      switch try await connection.post(body, to: url, headers: headers) {
      case 200..<300: return .delivered
      case 410: return .refusedForGood("HTTP 410")
      case let code: return .failed("HTTP \(code)")
      }
    } catch { return .failed("\(error)") }
  }
}
