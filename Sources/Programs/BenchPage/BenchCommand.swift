// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser
import FoundationEssentials
import Glibc
import HTTP

package struct BenchCommand: AsyncParsableCommand {
  package static let configuration = CommandConfiguration(
    commandName: "approval-bench", abstract: "Show a portal and a token with a simulated board in a browser.",
    discussion: """
      Starts a token server and a token, enrolls the user alice, and serves one page on the loopback interface. Prints \
      its address, which lets a browser of this machine in. Everything is removed at the end. With --server or --state, \
      a token server or a token that runs already is used instead; nothing is enrolled then but on the page.
      """)

  @Option(help: "The folder with the files of the page.")
  var page: String

  @Option(help: "The port of the page; 0 chooses a free port.")
  var port = 0

  @Option(help: "The number of tokens, each with its board and its user, 1 to \(Bench.users.count).")
  var tokens = 1

  @Option(
    help: ArgumentHelp("A token server that runs already; needs --portal.", valueName: "https://host"))
  var server: String?

  @Option(help: "With --server: a file for curl with the portal's user and cacert; see docs/bench-page.md.")
  var portal: String?

  @Option(
    name: .customLong("user"),
    help: "With --server: a user who exists there. Repeated for several tokens. Default: alice, bob, …")
  var users: [String] = []

  @Option(help: "The state directory of a token with the simulated board that runs already.")
  var state: String?

  @Option(help: "A library for LD_PRELOAD that sets back the wall clock of a token, as scripts/bench-page builds it.")
  var clockLibrary: String?

  package init() {}

  package func validate() throws {
    if !(0...65535).contains(port) { throw ValidationError("--port must be 0 to 65535") }
    guard (1...Bench.users.count).contains(tokens) else {
      throw ValidationError("--tokens must be 1 to \(Bench.users.count)")
    }
    if state != nil, tokens > 1 { throw ValidationError("--state is one token; --tokens starts several") }
    if (server == nil) != (portal == nil) { throw ValidationError("--server and --portal belong together") }
    if server == nil, !users.isEmpty { throw ValidationError("--user is for --server") }
    if !users.isEmpty, users.count != tokens || Set(users).count != tokens {
      throw ValidationError("give as many different users as tokens")
    }
    if let server, HTTPOrigin(server).map({ "\($0)" }) != server {
      throw ValidationError("--server is https://HOST[:PORT]")
    }
  }

  package func run() async throws {
    signal(SIGPIPE, SIG_IGN)
    let files = try PageFiles(folder: page)
    let port = port == 0 ? try freePort() : port
    let folder = try scratchFolder()
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let bench = Bench(try plan(folder: folder))
    let access = Access(port: port)
    let page = PageServer(
      access: access, files: files, feed: bench.feed, calls: bench.calls, description: bench.apiDescription)
    try await BenchRun(bench: bench, access: access, application: page.application(port: port)).run()
  }
}

extension BenchCommand {
  private func plan(folder: String) throws -> Bench.Plan {
    Bench.Plan(
      programs: try programFolder(), folder: folder,
      users: users.isEmpty ? Array(Bench.users.prefix(tokens)) : users,
      server: try server.map { url in
        let file = (portal ?? "").absolute
        return (url, try account(in: file), file)
      }, state: state?.absolute, clockLibrary: clockLibrary?.absolute)
  }

  private func account(in file: String) throws -> PortalFile {
    let found = text(of: file, atMost: PortalFile.largest + 1)
    guard (1...PortalFile.largest).contains(found.utf8.count) else {
      throw BenchError("\(file) cannot be read, is empty, or has more than \(PortalFile.largest) bytes")
    }
    do { return try PortalFile(parsing: found) } catch { throw BenchError("\(file): \(error)") }
  }
}

extension String {
  /// Programs that this one starts have another folder.
  fileprivate var absolute: String { hasPrefix("/") ? self : FileManager.default.currentDirectoryPath + "/" + self }
}

/// A port that is free now, outside the range that the kernel assigns to clients: none of them gets it while the token
/// server is stopped.
func freePort() throws -> Int {
  for _ in 1...100 {
    let port = Int.random(in: 10_000..<32_000)
    if isFree(port) { return port }
  }
  throw BenchError("no port of 127.0.0.1 is free: \(String(cString: strerror(errno)))")
}

private func isFree(_ port: Int) -> Bool {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
  defer { close(descriptor) }
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = UInt16(port).bigEndian
  address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
  return withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
    }
  }
}

/// A new folder for this run; its path is short, because it gets a socket.
private func scratchFolder() throws -> String {
  var template = Array("/tmp/approval-bench-XXXXXX".utf8CString)
  guard mkdtemp(&template) != nil else { throw BenchError("no folder in /tmp: \(String(cString: strerror(errno)))") }
  return String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
}

/// The folder with this program, in which the others are, too.
private func programFolder() throws -> String {
  var path = [CChar](repeating: 0, count: Int(PATH_MAX))
  let length = readlink("/proc/self/exe", &path, path.count)
  guard length > 0 else { throw BenchError("/proc is not mounted") }
  let own = String(decoding: path[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self)
  return own.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" }
}
