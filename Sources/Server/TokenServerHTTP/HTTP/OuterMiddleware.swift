// SPDX-License-Identifier: Apache-2.0
import HTTPTypes
import Hummingbird
import Logging
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// Converts errors of handlers to the error format of the API, and adds a fresh DPoP nonce to every response.
/// Accepts each path in one spelling only. Lets handlers know the clients of connections that a load balancer passes
/// on.
struct OuterMiddleware: RouterMiddleware {
  typealias Context = ServerContext

  let origin: Origin
  let nonces: DPoPNonces
  let revocations: Revocations
  let sources: ProxiedSources
  let allowed: AllowedMethods
  let logsAccess: Bool
  let log: DeviceLog
  /// With the label of the server's own lines: informational ones of libraries are left out.
  private let accessLog = Logger(label: "token-server")

  func handle(
    _ request: Request, context: ServerContext,
    next: (Request, ServerContext) async throws -> Response
  ) async throws -> Response {
    let started = Uptime.now()
    var response: Response
    var context = context
    context.sources = sources
    let sender = RequestSender()
    do {
      try Self.requireExact(request.uri.path)
      response = try await RequestSender.$current.withValue(sender) { try await next(request, context) }
    } catch { response = await reply(to: request, of: sender, after: error) }
    response.headers[.dpopNonce] = nonces.current()
    // Each 401 names a scheme (RFC 9110 §15.5.2): here the one of devices.
    if response.status == .unauthorized, response.headers[.wwwAuthenticate] == nil {
      response.headers[.wwwAuthenticate] = #"DPoP algs="ES256""#
    }
    let duration = Uptime.now() - started
    ServerMetrics.count(
      request: request.method.rawValue, route: context.endpointPath, status: response.status.code, after: duration)
    if logsAccess {
      accessLog.info(
        "\(request.method) \(request.uri.path) \(response.status.code) \(duration.milliseconds) ms")
    }
    return response
  }

  private static func requireExact(_ path: String) throws {
    if path.isExactPath { return }
    if path.hasPrefix("/device/") { throw DeviceAPIError(.notFound) }
    throw ResponseError.notFound
  }

  private func reply(to request: Request, of sender: RequestSender, after error: any Error) async -> Response {
    let isDevice = request.uri.path.hasPrefix("/device/")
    switch error {
    case let refusal as ResponseError where isDevice && refusal.status == .contentTooLarge:
      return .problem(Problem(.invalidRequest, issuer: origin.issuer, detail: refusal.body.errorDescription))
    case let refusal as ResponseError where isDevice && refusal.status == .badRequest:
      return .problem(Problem(.invalidRequest, issuer: origin.issuer, detail: refusal.body.errorDescription))
    case var refusal as ResponseError:
      refusal.body.revocations = await revocations.notices(for: refusal.gone)
      return refusal.response
    case let refusal as DeviceAPIError:
      let notices = await revocations.notices(for: refusal.gone)
      return .problem(refusal.problem(at: origin.issuer, revocations: notices), headers: refusal.headers)
    case let error as WireError:
      return isDevice
        ? .problem(Problem(.invalidRequest, issuer: origin.issuer, detail: "\(error)"))
        : ResponseError.invalidRequest("\(error)").response
    case is UnstorableTextError:
      let detail = "a text contains U+0000"
      return isDevice
        ? .problem(Problem(.invalidRequest, issuer: origin.issuer, detail: detail))
        : ResponseError.invalidRequest(detail).response
    case is ServerKeyring.ExpiredCertificateError:
      let detail = "the device's certificate has expired: remove the keys, and exchange new ones"
      return .problem(Problem(.keysNotExchanged, issuer: origin.issuer, detail: detail))
    case let error as StorageUnavailableError:
      log.about(sender.clientID).log(
        level: error.isBusy ? .notice : .error,
        "\(request.method) \(request.uri.path) failed: nothing can be stored (\(error.reason))")
      guard isDevice else { return ResponseError.cannotStore.response }
      return .problem(
        Problem(
          status: 503, title: "Service Unavailable", detail: ResponseError.cannotStore.body.errorDescription,
          retryable: true),
        headers: ResponseError.cannotStore.headers)
    case let error as HTTPError where error.status == .notFound:
      if let methods = allowed.value(for: request.uri.path) { return Self.notAllowed(methods, isDevice: isDevice) }
      return isDevice ? .problem(Problem(.notFound, issuer: origin.issuer)) : ResponseError.notFound.response
    default:
      // The text of an unexpected error may contain client data; its type name does not.
      let what =
        (error as? CorruptRowError)?.description ?? (error as? any SQLError)?.cause ?? "\(type(of: error))"
      log.about(sender.clientID).error("\(request.method) \(request.uri.path) failed: \(what)")
      guard isDevice else { return ResponseError(.internalServerError, "server_error").response }
      return .problem(Problem(status: 500, title: "Internal Server Error"))
    }
  }

  /// - Parameter methods: the value of `Allow`.
  private static func notAllowed(_ methods: String, isDevice: Bool) -> Response {
    guard isDevice else {
      return ResponseError(
        .methodNotAllowed, "invalid_request", "The method is not one of \(methods).", headers: [.allow: methods]
      ).response
    }
    return .problem(
      Problem(status: 405, title: "Method Not Allowed", detail: "the method is not one of \(methods)"),
      headers: [.allow: methods])
  }
}

extension DeviceAPIError {
  fileprivate var headers: HTTPFields {
    switch header {
    case nil: [:]
    case .challenge(let value): [.wwwAuthenticate: value]
    case .retryAfter(let seconds): [.retryAfter: "\(seconds)"]
    }
  }
}

extension String {
  /// Whether the path has no empty segment. The router ignores empty ones. A proxy need not, and its rule for the path
  /// would be passed by.
  var isExactPath: Bool {
    let segments = utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).dropFirst()
    return self == "/" || !segments.contains(where: \.isEmpty)
  }
}
