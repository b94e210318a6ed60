// SPDX-License-Identifier: Apache-2.0
import Cryptography

/// Who may use the page: browsers of this machine that know the random token of its address.
///
/// The token is in the fragment of the address, which browsers send to no server. The page exchanges it for a cookie
/// and a key. Pages of other origins cannot use the cookie: it is `SameSite=Strict`, each request must name this host,
/// and a request that names an origin must name this one. A server at another port of this machine gets the cookie from
/// browsers that visit it, but not the key, which only this origin's pages can read.
struct Access: Sendable {
  enum AccessError: Error, Equatable, Sendable { case wrongHost, wrongOrigin, noSession }

  /// What a request says about where it comes from.
  struct Claims: Sendable, Equatable {
    var host: String?
    var origin: String?
    /// `Sec-Fetch-Site`.
    var site: String?
    var cookie: String?
    var key: String?
    /// Whether the user opens an address, by a link or a file: `Sec-Fetch-Mode` and `Sec-Fetch-Dest`.
    var isNavigation = false
  }

  /// In the address of the page.
  let token: String
  /// In the address of the portal's callback.
  let callbackToken: String
  /// Of the pages of this origin.
  let key: String
  private let session: String
  let port: Int

  init(port: Int) {
    self.port = port
    (token, callbackToken, session, key) = (Self.random(), Self.random(), Self.random(), Self.random())
  }

  private static func random() -> String { Random.bytes(24).base64URL }

  /// As browsers write it: without the port where that is the default of HTTP.
  var host: String { port == 80 ? Self.machine : hostAndPort }
  private var hostAndPort: String { "\(Self.machine):\(port)" }
  private static let machine = "127.0.0.1"
  var address: String { "http://\(host)/#\(token)" }
  /// Cookies do not distinguish ports.
  private var cookieName: String { "approval-bench-\(port)" }
  var cookie: String { "\(cookieName)=\(session); HttpOnly; SameSite=Strict; Path=/" }

  /// Whether a request is for this page, and of this page or of no page.
  /// - Parameter changes: whether it changes anything; then it must name its origin.
  func checkOrigin(_ claims: Claims, changes: Bool) throws(AccessError) {
    guard claims.host == host || claims.host == hostAndPort else { throw .wrongHost }
    guard claims.origin == "http://\(host)" || claims.origin == nil && !changes else { throw .wrongOrigin }
    guard let site = claims.site else { return }
    guard site == "same-origin" || (site == "none" || claims.isNavigation) && !changes else { throw .wrongOrigin }
  }

  /// Whether a request has the cookie and the key.
  func checkSession(_ claims: Claims) throws(AccessError) {
    try checkCookie(claims)
    guard Self.isEqual(claims.key ?? "", key) else { throw .noSession }
  }

  /// Whether a request has the cookie.
  func checkCookie(_ claims: Claims) throws(AccessError) {
    let values = (claims.cookie ?? "").split(separator: ";").compactMap { pair -> Substring? in
      let text = pair.drop { $0 == " " }
      return text.hasPrefix(cookieName + "=") ? text.dropFirst(cookieName.utf8.count + 1) : nil
    }
    guard values.contains(where: { Self.isEqual($0, session) }) else { throw .noSession }
  }

  func isToken(_ text: String) -> Bool { Self.isEqual(text, token) }
  func isCallbackToken(_ text: String) -> Bool { Self.isEqual(text, callbackToken) }

  private static func isEqual(_ text: some StringProtocol, _ secret: String) -> Bool {
    constantTimeEqual(Array(text.utf8), Array(secret.utf8))
  }
}
