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
    // Compute the hashes also for an unknown client, so that the timing does not disclose whether it exists.
    let hashes = hasher.hashes(secret, for: .portalSecret)
    let matches = hashes.map { constantTimeEqual($0, client?.secretHash ?? []) }
    guard let client, let match = matches.firstIndex(of: true) else { throw refusal }
    if match > 0 { await adopt(hashes, of: client) }
    guard client.may(use: api) else { throw ResponseError.insufficientPermissions }
    return client.id
  }

  /// Replaces the hash from before the rotation of the pepper. If that cannot be stored, the next request does it.
  private func adopt(_ hashes: [[UInt8]], of client: APIClient) async {
    try? await store.write {
      try $0.adoptPortalSecret(of: client.id, former: client.secretHash, current: hashes[0])
    }
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
