// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import DisplayText
import HTTP
import JSONValues
import MobileAuth
import ServerBackends
import Vault

/// Calls to resource servers as the logged-in user, and the addresses to which they may go.
extension AccountService {
  /// - Throws: `CommandError` also if the user is not logged in (9010), and if the origin is not on the allow-list.
  func call(_ call: ResourceCall) async throws -> HTTPResponse {
    let (account, found) = try find(call.account)
    let server = try calls(of: account, at: found)
    guard let method = HTTPRequest.Method(rawValue: call.method) else {
      let methods = HTTPRequest.Method.allCases.map(\.rawValue).joined(separator: ", ")
      throw CommandError(.usage, "no method \"\(call.method.prefix(16))\"; there are: \(methods)")
    }
    guard let address = HTTPSAddress(call.url) else {
      throw CommandError(
        .usage, "not an https address without a user name, a fragment and unencoded characters: \(call.url.prefix(256))"
      )
    }
    try operations.requireResourceServer(address.origin, for: account)
    guard account.allowedOrigins.contains(address.origin.text) else {
      throw CommandError(
        .refused,
        "\(account.id) may not call \(address.origin): `approval-token allow \(account.id) \(address.origin)`, and hold "
          + "the button")
    }
    guard let session = service.session, session.account == account.id else {
      throw CommandError(
        .refused, "\(account.id) is not logged in: `approval-token login \(account.id)`, and type the PIN", number: 9010
      )
    }
    var request = HTTPRequest(
      method, address.text, body: call.body?.bytes ?? [], deadline: ResourceServerClient.deadline,
      maximumBodyBytes: ResourceCall.longestResponse)
    if let type = call.contentType { request.headers["Content-Type"] = type }
    // Pins are those of the token server.
    let http = try backends.context.http(to: account.server, at: [address.origin.text], pins: [])
    let client = ResourceServerClient(http: http) { request, nonce in
      try await server.authorize(request, in: session, nonce: nonce)
    }
    return try await client.send(request, to: address.origin)
  }

  /// Adds an origin to the allow-list, after a very long hold of the button.
  func allow(_ name: String, _ text: String, _ progress: @escaping Progress) async throws -> OriginsResponse {
    let (account, found) = try find(name)
    _ = try calls(of: account, at: found)
    let origin = try HTTPOrigin(argument: text)
    guard try operations.canAllow(origin, for: account) else { return OriginsResponse(account) }
    return try await service.panelTasks.perform(at: account.server) { panel in
      progress("hold the button for \(veryLongHold.inSeconds) to let \(account.id) call \(origin)")
      try await PanelDialog(panel, in: environment).veryLongHold()
      let response = response(of: try operations.allow(origin, for: account), account)
      await panel.show(.confirmed)
      return response
    }
  }

  /// Removes an origin from the allow-list.
  func disallow(_ name: String, _ text: String) throws -> OriginsResponse {
    let account = try operations.activeAccount(name)
    let origin = try HTTPOrigin(argument: text)
    return response(of: try operations.disallow(origin, for: account), account)
  }

  /// Logs the change, if there was one.
  private func response(
    of change: (account: AccountRecord, entry: AuditEntry)?, _ account: AccountRecord
  ) -> OriginsResponse {
    if let change { service.log(change.entry) }
    return OriginsResponse(change?.account ?? account)
  }

  private func calls(of account: AccountRecord, at server: any TokenServerClient) throws -> any SessionCalls {
    guard let server = server as? any SessionCalls else {
      throw CommandError(.usage, "\(account.id) cannot call resource servers: its server has no sessions")
    }
    return server
  }
}

extension OriginsResponse {
  fileprivate init(_ account: AccountRecord) {
    self.init(account: account.id.text, allowedOrigins: account.allowedOrigins)
  }
}

extension ResourceReply {
  /// The lines for one response.
  static func lines(of response: HTTPResponse) -> [ResourceReply] {
    let parts = stride(from: 0, to: response.body.count, by: longestPart).map { start in
      ResourceReply.part(Array(response.body[start..<min(start + longestPart, response.body.count)]))
    }
    let type = response.headers["Content-Type"].map { $0.sanitized(atMost: 256) }
    return [.head(status: response.status, contentType: type, size: response.body.count)] + parts
  }
}
