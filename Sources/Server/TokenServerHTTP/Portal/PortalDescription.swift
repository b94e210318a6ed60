// SPDX-License-Identifier: Apache-2.0
import Hummingbird
import JSONValues
import TokenServerCore

/// The OpenAPI description of the portal API, with the address of this server. It needs no credentials.
struct PortalDescription: Sendable {
  static let path = "/oauth/api/openapi.json"

  let origin: Origin

  private static let description = JSONValue(parsing: PackageResources.portal_api_openapi_json)

  func add(to router: Router<ServerContext>) {
    router.get(RouterPath(Self.path)) { _, _ -> Response in
      guard case .object(var members) = Self.description else { throw ResponseError.notFound }
      members["servers"] = .list([.object(["url": .text(origin.issuer)])])
      return Response.json(bytes: Array(JSONValue.object(members).canonical.utf8))
    }
  }
}
