// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import Glibc
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

struct FleetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fleet", abstract: "Create the enrollment files of many boards from a list.",
    discussion: """
      The list is CSV with the header user,host and one board in each line; a user who does not exist is added. For \
      each board there is a folder with its host name and the files approval-token.toml and approval-token.uri, for \
      the partition BOOT of its SD card. Prints the list with the folders and the end of validity, as CSV. After the \
      enrollments, "device list" shows the host names with their users. An attacker with a URI can use it to \
      enroll: transport the SD cards like passwords.
      """)

  static let maximumDays = 30

  @OptionGroup var options: CommonOptions
  @Argument(help: "The list of boards.", completion: .file(extensions: ["csv"]))
  var list: String
  @Option(help: "A new directory for the files.", completion: .directory)
  var output = "fleet"
  @Option(
    help: "A file with lines for each approval-token.toml, such as the board and the Wi-Fi.", completion: .file())
  var settings: String?
  @Option(help: "For how many days each URI is valid, at most 30.")
  var days = 14

  /// An enrollment of one board. The code is in its file only.
  private struct Made: Encodable {
    var user: String
    var host: String
    var folder: String
    var expiresAtMs: Int64

    enum CodingKeys: String, CodingKey {
      case user, host, folder
      case expiresAtMs = "expires_at_ms"
    }
  }

  func validate() throws {
    guard (1...Self.maximumDays).contains(days) else {
      throw ValidationError("--days must be from 1 to \(Self.maximumDays)")
    }
  }

  func run() async throws {
    let rows = try FleetList(text(of: list)).rows
    let common = try commonLines()
    let session = try await options.open()
    let maker = try await ActivationMaker(session)
    let enrollments = rows.map { (row: $0, activation: maker.make(.long)) }
    let now = ServerClock.system.now()
    let expiresAt = now + .seconds(86400 * days)
    try makeFolder(output)
    let made: [Made]
    // First, so that no code is stored whose file cannot be written.
    do {
      made = try enrollments.map { row, activation in
        Made(
          user: row.user, host: row.host, folder: try writeFiles(of: row.host, activation.uri, common),
          expiresAtMs: expiresAt.milliseconds)
      }
    } catch {
      keepOrRemoveFiles(mayBeStored: false)
      throw error
    }
    try await session.write(undo: { keepOrRemoveFiles(mayBeStored: $0) }) { database in
      for (row, activation) in enrollments {
        _ = try database.insertUser(UserID(row.user), now: now)
        try database.insertActivationCode(activation.hash, userID: UserID(row.user), expiresAt: expiresAt)
      }
    }
    try options.print(made, csv(made, moment(expiresAt)))
  }

  /// After an error. Nothing else has the codes: their files are kept if they may be stored.
  private func keepOrRemoveFiles(mayBeStored: Bool) {
    guard mayBeStored else {
      try? FileManager.default.removeItem(atPath: output)
      return
    }
    complain("warning: the codes may be stored nevertheless, so \(output) is kept: use it, or delete it")
  }

  private func csv(_ made: [Made], _ end: String) -> String {
    (["user,host,folder,expires"] + made.map { "\($0.user),\($0.host),\($0.folder),\(end)" }).joined(separator: "\n")
  }

  /// - Returns: the folder of the files.
  private func writeFiles(of host: String, _ uri: String, _ common: String) throws -> String {
    let folder = "\(output)/\(host)"
    try makeFolder(folder)
    try ServerDirectory.write(Array("\(common)host = \"\(host)\"\n".utf8), to: "\(folder)/approval-token.toml")
    try ServerDirectory.write(Array("\(uri)\n".utf8), to: "\(folder)/approval-token.uri")
    return folder
  }

  /// The lines of `--settings`.
  private func commonLines() throws -> String {
    guard let settings else { return "" }
    let content = try text(of: settings)
    do { return try FleetSettings(content).text } catch let error as CommandError {
      throw CommandError("\(settings): \(error)")
    }
  }

  /// The text of a file, without the byte order mark of some editors and spreadsheets.
  private func text(of path: String) throws -> String {
    guard let data = FileManager.default.contents(atPath: path) else { throw CommandError("cannot read \(path)") }
    let content = data.starts(with: [0xEF, 0xBB, 0xBF]) ? data.dropFirst(3) : data
    guard data.count <= 1 << 22, let text = String(validating: content, as: UTF8.self) else {
      throw CommandError("\(path) must be a text in UTF-8, and have at most 4 MiB")
    }
    return text
  }

  private func makeFolder(_ path: String) throws {
    guard mkdir(path, 0o700) == 0 else {
      let code = errno
      let advice = code == EEXIST ? "; choose another one with --output" : ""
      throw CommandError("cannot create the directory \(path): \(String(cString: strerror(code)))\(advice)")
    }
  }
}
