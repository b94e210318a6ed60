// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

struct TransactionCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "transaction", abstract: "Show mobile authentication transactions.", subcommands: [List.self])

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List the transactions, newest first.")

    @OptionGroup var options: CommonOptions

    @Option(help: "The maximum number of transactions.")
    var limit = 100

    private struct Entry: Encodable {
      var transactionID: String
      var user: String
      var deviceID: String
      var type: String
      var state: String
      var reason: String?
      var denialReason: String?
      var createdAtMs: Int64
      /// When it was first sent to its device in a list, or reported by it, milliseconds since 1970.
      var deliveredAtMs: Int64?
      /// The end of the hold on the user's requests after "not me", milliseconds since 1970.
      var heldUntilMs: Int64?

      enum CodingKeys: String, CodingKey {
        case user, type, state, reason
        case transactionID = "transaction_id"
        case deviceID = "device_id"
        case denialReason = "denial_reason"
        case createdAtMs = "created_at_ms"
        case deliveredAtMs = "delivered_at_ms"
        case heldUntilMs = "held_until_ms"
      }

      var text: String {
        let why = [reason, denialReason].compactMap { $0 }.joined(separator: ", ")
        let delivery = deliveredAtMs.map { ", delivered after \(max(0, $0 - createdAtMs)) ms" } ?? ""
        return "\(moment(Timestamp(createdAtMs)))  \(transactionID)  \(type)  \(user)  \(state)"
          + "\(why.isEmpty ? "" : " (\(why))")\(delivery)"
      }
    }

    func validate() throws {
      guard (1...100_000).contains(limit) else { throw ValidationError("--limit must be 1 to 100000") }
    }

    func run() async throws {
      let now = ServerClock.system.now()
      let (entries, holds, unreadable) = try await options.open().read { [limit] database in
        let holds = try database.holds(now: now)
        let ends = Dictionary(holds.map { ($0.userID, $0.until) }) { first, _ in first }
        let entries = try database.transactions(limit: limit).map { transaction, denialReason in
          Entry(
            transactionID: transaction.id, user: transaction.userID.text, deviceID: transaction.clientID.text,
            type: transaction.type, state: transaction.state(at: now).rawValue,
            reason: transaction.reason?.rawValue, denialReason: denialReason,
            createdAtMs: transaction.createdAt.milliseconds, deliveredAtMs: transaction.deliveredAt?.milliseconds,
            heldUntilMs: ends[transaction.userID]?.milliseconds)
        }
        return (entries, holds, try database.unreadableRows(of: ["mobile_auth_transaction", "hold"]))
      }
      unreadable.forEach(complain)
      let held = holds.map { user, until in
        "\(user) is on hold until \(moment(until)) after \"not me\"; token-server user resume \(user) ends the hold"
      }
      let lines = held + (entries.isEmpty ? ["no transactions"] : entries.map(\.text))
      try options.print(entries, lines.joined(separator: "\n"))
    }
  }
}
