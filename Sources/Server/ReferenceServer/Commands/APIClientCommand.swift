// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import TokenServerCore
import TokenServerStore

struct APIClientCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "api-client", abstract: "Manage the portals that may use the server.",
    subcommands: [Add.self, Renew.self, Delete.self, List.self])

  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "add", abstract: "Add a portal and print its secret; the server stores only a hash of it.")

    @OptionGroup var options: CommonOptions
    @Argument(help: "The portal's client id.")
    var id: String
    @Flag(inversion: .prefixedNo, help: "May start mobile authentication.")
    var mobileAuthentication = true
    @Flag(inversion: .prefixedNo, help: "May list and delete users' devices.")
    var endUser = true
    @Flag(help: "May check access tokens: for a resource server that tokens call.")
    var introspection = false

    func run() async throws {
      let id = try validated(id, as: "a client id")
      guard !id.contains(":") else { throw ValidationError("a client id must not contain a colon (RFC 7617)") }
      let session = try await options.open()
      let (secret, hash) = session.newPortalSecret()
      let client = APIClient(
        id: id, secretHash: hash, mayAuthenticate: mobileAuthentication, mayManageDevices: endUser,
        mayIntrospect: introspection)
      guard try await session.write({ try $0.insertAPIClient(client) }) else {
        throw CommandError("the client \(id) exists already; a new secret makes \"token-server api-client renew\"")
      }
      try options.print(Credentials(id: id, secret: secret))
    }
  }

  struct Renew: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "renew", abstract: "Print a new secret for a portal; the former one is invalid at once.")

    @OptionGroup var options: CommonOptions
    @Argument(help: "The portal's client id.")
    var id: String

    func run() async throws {
      let session = try await options.open()
      let (secret, hash) = session.newPortalSecret()
      guard try await session.write({ [id] in try $0.renewAPIClient(id, secretHash: hash) }) else {
        throw CommandError("there is no client \(id)")
      }
      try options.print(Credentials(id: id, secret: secret))
    }
  }

  struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "delete",
      abstract: "Delete a portal: its secret is invalid at once, and its open requests are canceled.")

    @OptionGroup var options: CommonOptions
    @Argument(help: "The portal's client id.")
    var id: String

    private struct Deleted: Encodable {
      var clientID: String

      enum CodingKeys: String, CodingKey { case clientID = "client_id" }
    }

    func run() async throws {
      let now = ServerClock.system.now()
      try await options.open().change { [id] database in
        guard let effects = try database.deleteAPIClient(id, now: now) else {
          throw CommandError("there is no client \(id)")
        }
        return effects
      }
      try options.print(Deleted(clientID: id), "deleted the client \(id)")
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the portals.")

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
      let (clients, unreadable) = try await options.open().read {
        (try $0.apiClients(), try $0.unreadableRows(of: ["api_client"]))
      }
      unreadable.forEach(complain)
      try options.print(
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

/// What a portal needs to authenticate itself.
private struct Credentials: Encodable {
  var id: String
  var secret: String

  enum CodingKeys: String, CodingKey {
    case id = "client_id"
    case secret = "client_secret"
  }
}

extension CommonOptions {
  fileprivate func print(_ credentials: Credentials) throws {
    try print(
      credentials, "client_id: \(credentials.id)\nclient_secret: \(credentials.secret)",
      ifLost: "the secret is stored, and lost: run \"token-server api-client renew \(credentials.id)\" for another")
  }
}
