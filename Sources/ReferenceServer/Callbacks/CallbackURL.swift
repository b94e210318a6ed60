import Foundation

/// Where a portal wants to be called.
enum CallbackURL {
  static func isAcceptable(_ text: String) -> Bool {
    guard text.utf8.count <= 2048, let url = URL(string: text), let scheme = url.scheme?.lowercased() else {
      return false
    }
    return (scheme == "https" || scheme == "http") && url.host?.isEmpty == false && url.fragment == nil
  }
}
