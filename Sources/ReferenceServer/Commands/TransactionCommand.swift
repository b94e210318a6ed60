import ArgumentParser
import GRDB
import ReferenceProtocol

struct TransactionCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "transaction", abstract: "Mobile authentication transactions.", subcommands: [List.self])

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List the transactions, newest first.")

    @OptionGroup var options: CommonOptions

    @Option(help: "At most this many.")
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

      enum CodingKeys: String, CodingKey {
        case user, type, state, reason
        case transactionID = "transaction_id"
        case deviceID = "device_id"
        case denialReason = "denial_reason"
        case createdAtMs = "created_at_ms"
      }

      var text: String {
        let why = [reason, denialReason].compactMap { $0 }.joined(separator: ", ")
        return "\(moment(createdAtMs))  \(transactionID)  \(type)  \(user)  \(state)\(why.isEmpty ? "" : " (\(why))")"
      }
    }

    func validate() throws {
      guard (1...100_000).contains(limit) else { throw ValidationError("--limit must be 1 to 100000") }
    }

    func run() async throws {
      let nowMs = ServerClock.system.nowMs()
      let entries = try await options.open().store.read { [limit] database in
        try database.rows(
          "SELECT * FROM mobile_auth_transaction ORDER BY created_at_ms DESC, id LIMIT ?", [limit]
        ).map { row in
          let transaction = try Transaction(row)
          return Entry(
            transactionID: transaction.id, user: transaction.userID, deviceID: transaction.clientID,
            type: transaction.type, state: transaction.state(at: nowMs).rawValue,
            reason: transaction.reason?.rawValue, denialReason: row["denial_reason"],
            createdAtMs: transaction.createdAtMs)
        }
      }
      options.print(entries, entries.map(\.text).joined(separator: "\n"))
    }
  }
}
