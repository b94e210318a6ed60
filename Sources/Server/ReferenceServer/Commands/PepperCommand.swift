// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Glibc
import TokenServerCore
import TokenServerStore

struct PepperCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pepper", abstract: "Replace the key that protects all secrets in the database.",
    subcommands: [Rotate.self, Retire.self])

  struct Rotate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "rotate", abstract: "Make a new pepper for a stopped server, or complete an interrupted rotation.",
      discussion: """
        Encrypts the server's keys with the new pepper. The former one is kept as pepper.former: with it the secrets \
        of portals, activation codes and fleet tokens from before stay valid, and each gets a new hash at its next \
        use. Then "pepper retire" deletes it. After an interruption, the server starts, and the same command goes on. \
        If the pepper is a systemd credential, first load it as token-server-pepper-former, and 32 new random bytes \
        as token-server-pepper.
        """)

    @OptionGroup var options: CommonOptions

    private struct Rotated: Encodable {
      var serverKeys: Int
      var unreadableKeys: [String]
      var formerPepper: String

      enum CodingKeys: String, CodingKey {
        case serverKeys = "server_keys"
        case unreadableKeys = "unreadable_keys"
        case formerPepper = "former_pepper"
      }
    }

    func run() async throws {
      let directory = options.serverDirectory
      let database = try directory.configuration().database
      let lock = try directory.lockForServing()
      defer { close(lock) }
      let store = try await directory.openStore(database)
      let (keys, unreadable) = try await PepperRotation(directory: directory, store: store).run()
      store.close()
      for key in unreadable { complain("warning: the key \(key) could not be decrypted before, and is unchanged") }
      let former = directory.formerPepperSource ?? ""
      let others = database == nil ? "" : ", after copying pepper and pepper.former to the directory of each server"
      try options.print(
        Rotated(serverKeys: keys - unreadable.count, unreadableKeys: unreadable, formerPepper: former),
        """
        keys encrypted with the new pepper: \(keys - unreadable.count); the former one is kept: \(former)
        next: start the server\(others)
        when all portals have used it: token-server pepper retire --directory \(directory.path)
        """)
    }
  }

  struct Retire: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "retire", abstract: "Delete the former pepper, if no valid secret needs it any longer.",
      discussion: """
        Otherwise it names the portals, fleet tokens and activation codes that need it. The server may be running.
        """)

    @OptionGroup var options: CommonOptions

    @Flag(help: "Delete it nevertheless: the secrets that need it are refused from then on.")
    var force = false

    private struct Retired: Encodable {
      var portals: [String]
      var fleetTokens: [String]
      var activationCodes: Int

      enum CodingKeys: String, CodingKey {
        case portals
        case fleetTokens = "fleet_tokens"
        case activationCodes = "activation_codes"
      }
    }

    func run() async throws {
      let directory = options.serverDirectory
      let store = try await directory.openStore(directory.configuration().database)
      guard try await !directory.peppers(of: store).isRotationOpen else {
        throw CommandError("the rotation is not complete: stop the server, and run \"token-server pepper rotate\"")
      }
      guard let source = directory.formerPepperSource else { throw CommandError("there is no former pepper") }
      let now = ServerClock.system.now()
      let use = try await store.write { [force] database in
        let use = try database.useOfFormerPepper(now: now)
        if force || use.isEmpty { try database.invalidateFormerPepper() }
        return use
      }
      guard force || use.isEmpty else {
        throw CommandError("the former pepper is needed by \(use.text); with --force they are refused")
      }
      let isFile = source == directory.formerPepperFile
      if isFile { try directory.deleteFormerPepper() }
      try options.print(
        Retired(portals: use.portals, fleetTokens: use.fleetTokens, activationCodes: use.activationCodes),
        (use.isEmpty ? "" : "refused from now on: \(use.text)\n")
          + (isFile ? "deleted \(source)" : "now remove the credential token-server-pepper-former"))
    }
  }
}

extension FormerPepperUse {
  /// What needs the former pepper, in words.
  fileprivate var text: String {
    let codes = lastExpiry.map { "activation codes: \(activationCodes), the last of which expires at \(moment($0))" }
    return [
      portals.isEmpty ? nil : "portals: " + portals.joined(separator: ", "),
      fleetTokens.isEmpty ? nil : "fleet tokens: " + fleetTokens.joined(separator: ", "),
      codes,
    ].compactMap(\.self).joined(separator: "; ")
  }
}
