// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Hummingbird
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// Authenticates portals: HTTP Basic, or `client_id` and `client_secret` in the form.
struct PortalGate: Sendable {
  enum API: Sendable { case mobileAuthentication, endUser, introspection }

  let store: Store
  let hasher: KeyedHasher

  /// - Parameter form: the request's form, if it has one.
  /// - Returns: the portal's client id.
  @discardableResult
  func admit(_ request: Request, form: Form = Form(), to api: API) async throws -> String {
    let refusal: ResponseError = api == .endUser ? .unauthorized : .invalidClient
    let header = request.headers[.authorization]
    guard let (id, secret) = AuthorizationHeader.basic(of: header) ?? formCredentials(form) else { throw refusal }
    let client = try await store.read { try $0.apiClient(id) }
    // Compute the hash also for an unknown client, so that the timing does not disclose whether it exists.
    let hash = hasher.hash(secret, for: .portalSecret)
    guard let client, constantTimeEqual(hash, client.secretHash) else { throw refusal }
    guard client.may(use: api) else { throw ResponseError.insufficientPermissions }
    return client.id
  }

  private func formCredentials(_ form: Form) -> (id: String, secret: String)? {
    guard let id = form["client_id"], let secret = form["client_secret"] else { return nil }
    return (id, secret)
  }
}

extension APIClient {
  fileprivate func may(use api: PortalGate.API) -> Bool {
    switch api {
    case .mobileAuthentication: mayAuthenticate
    case .endUser: mayManageDevices
    case .introspection: mayIntrospect
    }
  }
}
