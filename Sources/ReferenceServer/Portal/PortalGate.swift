import Cryptography
import Hummingbird
import ReferenceProtocol

/// Authenticates portals: HTTP Basic, or `client_id` and `client_secret` in the form.
struct PortalGate: Sendable {
  enum API: Sendable { case mobileAuthentication, endUser }

  let store: Store
  let peppered: Peppered

  /// - Parameter form: the request's form, if it has one.
  func admit(_ request: Request, form: Form = Form(), to api: API) async throws {
    let refusal: Refusal = api == .endUser ? .unauthorized : .invalidClient
    guard let (id, secret) = basicCredentials(of: request) ?? formCredentials(form) else { throw refusal }
    let client = try await store.read { try $0.apiClient(id) }
    // Compute the hash also for an unknown client, so that the timing does not disclose whether it exists.
    let hash = peppered.hash(secret, for: .portalSecret)
    guard let client, constantTimeEqual(hash, client.secretHash) else { throw refusal }
    guard api == .endUser ? client.mayManageDevices : client.mayAuthenticate else {
      throw Refusal.insufficientPermissions
    }
  }

  private func basicCredentials(of request: Request) -> (String, String)? {
    guard let header = request.headers[.authorization] else { return nil }
    let parts = header.split(separator: " ")
    guard parts.count == 2, parts[0].lowercased() == "basic", let decoded = bytes(base64: String(parts[1])),
      let text = String(validating: decoded, as: UTF8.self), let colon = text.firstIndex(of: ":")
    else { return nil }
    return (String(text[..<colon]), String(text[text.index(after: colon)...]))
  }

  private func formCredentials(_ form: Form) -> (String, String)? {
    guard let id = form["client_id"], let secret = form["client_secret"] else { return nil }
    return (id, secret)
  }
}
