// SPDX-License-Identifier: Apache-2.0
import Hummingbird
import Synchronization

/// The methods of each path, for 405 (RFC 9110 §15.5.6): the router reports 404 also for a known path.
final class AllowedMethods: Sendable {
  private struct Route {
    let method: String
    /// The components of the path; nil for a parameter.
    let components: [String?]
  }

  private let stored = Mutex<[Route]>([])

  /// Takes over the routes of a complete router.
  /// - Parameter withHead: whether the router generates HEAD for each GET.
  func learn<Context>(_ router: Router<Context>, withHead: Bool = false) {
    let routes = router.routes.flatMap { route in
      let components = route.path.description.split(separator: "/").map { component in
        component.hasPrefix(":") || component.hasPrefix("{") ? nil : String(component)
      }
      let methods = withHead && route.method == .get ? ["GET", "HEAD"] : [route.method.rawValue]
      return methods.map { Route(method: $0, components: components) }
    }
    stored.withLock { $0 = routes }
  }

  /// - Returns: the value of `Allow`; nil if there is nothing at the path.
  func value(for path: String) -> String? {
    let components = path.split(separator: "/").map(String.init)
    let methods = stored.withLock { routes in
      routes.filter { route in
        route.components.count == components.count
          && zip(route.components, components).allSatisfy { $0 == nil || $0 == $1 }
      }.map(\.method)
    }
    return methods.isEmpty ? nil : Set(methods).sorted().joined(separator: ", ")
  }
}
