import HTTPTypes
import Hummingbird
import Logging
import ReferenceProtocol

/// Turns whatever a handler throws into the reply its caller understands, and puts a fresh DPoP nonce on all of them.
struct OuterMiddleware: RouterMiddleware {
  typealias Context = ServerContext

  let origin: Origin
  let nonces: DPoPNonces
  let logsAccess: Bool

  func handle(
    _ request: Request, context: ServerContext,
    next: (Request, ServerContext) async throws -> Response
  ) async throws -> Response {
    let startedMs = Uptime.nowMs()
    var response: Response
    do { response = try await next(request, context) } catch { response = reply(to: request, after: error) }
    response.headers[.dpopNonce] = nonces.current()
    if logsAccess {
      context.logger.info(
        "\(request.method) \(request.uri.path) \(response.status.code) \(Uptime.nowMs() - startedMs) ms")
    }
    return response
  }

  private func reply(to request: Request, after error: any Error) -> Response {
    let isDevice = request.uri.path.hasPrefix("/device/")
    switch error {
    case let refusal as Refusal where isDevice && refusal.status == .contentTooLarge:
      return .problem(Problem(.invalidRequest, issuer: origin.issuer, detail: refusal.body.errorDescription))
    case let refusal as Refusal where isDevice && refusal.status == .badRequest:
      return .problem(Problem(.invalidRequest, issuer: origin.issuer, detail: refusal.body.errorDescription))
    case let refusal as Refusal: return refusal.response
    case let refusal as DeviceRefusal: return .problem(refusal.problem(at: origin.issuer), headers: refusal.headers)
    case let error as WireError:
      return isDevice
        ? .problem(Problem(.invalidRequest, issuer: origin.issuer, detail: "\(error)"))
        : Refusal.invalidRequest("\(error)").response
    case let error as HTTPError where error.status == .notFound:
      return isDevice ? .problem(Problem(.notFound, issuer: origin.issuer)) : Refusal.notFound.response
    default:
      // The text of an unforeseen error may hold what a caller sent; its type does not.
      Logger(label: "http").error("\(request.method) \(request.uri.path) failed: \(type(of: error))")
      return Refusal(.internalServerError, "server_error").response
    }
  }
}
