// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Cryptography
import Glibc
import TokenServerCore
import TokenServerStore

struct FleetTokenCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fleet-token", abstract: "Manage fleet tokens, with which devices register before they have a user.",
    subcommands: [Add.self, Delete.self, List.self])

  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "add", abstract: "Create a fleet token and print it; the server stores only a hash of it.")

    @OptionGroup var options: CommonOptions
    @Argument(help: "A name for the fleet token; `delete` needs it.")
    var name: String
    @Option(
      help: """
        Also write this new file, approval-token.uri for the SD cards: with it boards register, before they have a user.
        """, completion: .file())
    var uri: String?

    private struct Added: Encodable {
      var name: String
      var token: String
    }

    func run() async throws {
      let name = try validated(name, as: "a name")
      let session = try await options.open()
      let maker = uri == nil ? nil : try await ActivationMaker(session)
      let token = Random.bytes(32).lowercaseHex
      let hash = session.hasher.hash(token, for: .fleetToken)
      let now = ServerClock.system.now()
      // First, so that no token is stored whose file cannot be written.
      if let uri, let maker { try ServerDirectory.write(Array("\(maker.fleetURI(token))\n".utf8), to: uri) }
      try await session.write(undo: { keepOrRemoveFile(mayBeStored: $0) }) { database in
        guard try database.insertFleetToken(hash, name: name, now: now) else {
          throw CommandError("the fleet token \(name) already exists")
        }
      }
      try options.print(
        Added(name: name, token: token), "token: \(token)",
        ifLost: uri.map { "it is in \($0)" } ?? "the fleet token is stored, and lost: delete it, and add another")
    }

    /// After an error. Nothing else has the fleet token: its file is kept if it may be stored.
    private func keepOrRemoveFile(mayBeStored: Bool) {
      guard let uri else { return }
      guard mayBeStored else {
        unlink(uri)
        return
      }
      complain("warning: the fleet token \(name) may be stored nevertheless, so \(uri) is kept: use it, or delete both")
    }
  }

  struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "delete", abstract: "Revoke a fleet token. Devices that registered with it stay registered.")

    @OptionGroup var options: CommonOptions
    @Argument var name: String

    private struct Deleted: Encodable {
      var name: String
    }

    func run() async throws {
      let isDeleted = try await options.open().write { [name] in try $0.deleteFleetToken(named: name) }
      guard isDeleted else { throw CommandError("there is no fleet token \(name)") }
      try options.print(Deleted(name: name), "deleted the fleet token \(name)")
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List the fleet tokens by name, each with the number of its devices.")

    @OptionGroup var options: CommonOptions

    private struct Entry: Encodable {
      var name: String
      /// The number of devices that are registered with it.
      var devices: Int
      var createdAtMs: Int64

      enum CodingKeys: String, CodingKey {
        case name, devices
        case createdAtMs = "created_at_ms"
      }

      var text: String { "\(name)  devices: \(devices), added \(moment(Timestamp(createdAtMs)))" }
    }

    func run() async throws {
      let (tokens, unreadable) = try await options.open().read {
        (try $0.fleetTokens(), try $0.unreadableRows(of: ["fleet_token"]))
      }
      unreadable.forEach(complain)
      let entries = tokens.map { Entry(name: $0.name, devices: $0.devices, createdAtMs: $0.createdAt.milliseconds) }
      try options.print(entries, entries.isEmpty ? "no fleet tokens" : entries.map(\.text).joined(separator: "\n"))
    }
  }
}
