// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Cryptography
import TokenServerCore
import TokenServerStore

struct APIClientCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "api-client", abstract: "Manage the portals that may use the server.",
    subcommands: [Add.self, List.self])

  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Add a portal and print its secret; the server stores only a hash of it.")

    @OptionGroup var options: CommonOptions
    @Argument(help: "The portal's client id.")
    var id: String
    @Flag(inversion: .prefixedNo, help: "May start mobile authentication.")
    var mobileAuthentication = true
    @Flag(inversion: .prefixedNo, help: "May list and delete users' devices.")
    var endUser = true
    @Flag(help: "May check access tokens: for a resource server that tokens call.")
    var introspection = false

    private struct Added: Encodable {
      var clientID: String
      var clientSecret: String

      enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
        case clientSecret = "client_secret"
      }
    }

    func run() async throws {
      let id = try validated(id, as: "a client id")
      guard !id.contains(":") else { throw ValidationError("a client id must not contain a colon (RFC 7617)") }
      let session = try options.open()
      let secret = Random.bytes(32).lowercaseHex
      let hash = session.hasher.hash(secret, for: .portalSecret)
      let client = APIClient(
        id: id, secretHash: hash, mayAuthenticate: mobileAuthentication, mayManageDevices: endUser,
        mayIntrospect: introspection)
      guard try await session.store.write({ try $0.insertAPIClient(client) }) else {
        throw CommandError("the client \(id) exists already")
      }
      options.print(
        Added(clientID: id, clientSecret: secret), "client_id: \(id)\nclient_secret: \(secret)")
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List the portals.")

    @OptionGroup var options: CommonOptions

    private struct Entry: Encodable {
      var clientID: String
      var mobileAuthentication: Bool
      var endUser: Bool
      var introspection: Bool

      enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
        case mobileAuthentication = "mobile_authentication"
        case endUser = "end_user"
        case introspection
      }
    }

    func run() async throws {
      let (clients, unreadable) = try await options.open().store.read {
        (try $0.apiClients(), try $0.unreadableRows(of: ["api_client"]))
      }
      unreadable.forEach(complain)
      options.print(
        clients.map {
          Entry(
            clientID: $0.id, mobileAuthentication: $0.mayAuthenticate, endUser: $0.mayManageDevices,
            introspection: $0.mayIntrospect)
        },
        clients.map { client in
          let permissions = [
            (client.mayAuthenticate, "mobile-authentication"), (client.mayManageDevices, "end-user"),
            (client.mayIntrospect, "introspection"),
          ]
          return ([client.id] + permissions.filter(\.0).map(\.1)).joined(separator: "  ")
        }.joined(separator: "\n"))
    }
  }
}
