// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import BuiltPrograms
import ControlProtocol
import Glibc
import Testing

/// A token server and the service under test with the bench kernel's board, as processes. User alice is enrolled with a
/// PIN. The portal is curl. One test at a time uses it.
final class Site: @unchecked Sendable {
  /// That of the suite, if it has one.
  @TaskLocal static var ofSuite: Site?

  /// That of the suite, which must have one.
  static var current: Site { get throws { try #require(ofSuite) } }

  static let pin = "13589"
  private static let folder = "/run/site"
  private static let state = "\(folder)/token"
  private static let log = "\(folder)/token.log"

  let bench: Bench
  private let serverPort: String
  private let credentials: String
  private var device = ""

  /// - Parameter isSplit: whether the service is two processes, of which the one with the keypad is in a network
  ///   namespace of its own, as in a unit with `PrivateNetwork=yes`.
  /// - Parameter authenticators: what the user can register besides the PIN.
  init(isSplit: Bool, _ authenticators: SiteAuthenticators = .instantBadge) async throws {
    bench = try Bench()
    try Self.run("panel plug")
    try Self.run("rm -rf \(Self.folder) && mkdir -p \(Self.folder)")
    let server = "\(try BuiltProgram.path("token-server"))"
    let directory = "--directory \(Self.folder)/server --json"
    try Self.run("\(server) init \(directory)")
    // Longer than the tests take on a busy machine.
    try Self.run("sed -i 's/^request_expires_in = .*/request_expires_in = 600/' \(Self.folder)/server/config.toml")
    try Self.add(authenticators)
    try Self.begin("\(server) serve --directory \(Self.folder)/server --port 0", log: "\(Self.folder)/server.log")
    serverPort = try await eventually("the token server's port") {
      let line = try contents("\(Self.folder)/server.log").split(separator: "\n").first { $0.contains("listening on") }
      return line?.split(separator: ":").last.map(String.init)
    }
    try Self.run("\(server) user add alice \(directory)")
    let uri = try field("uri", of: Self.run("\(server) activation-code alice \(directory)"))
    let secret = try field("client_secret", of: Self.run("\(server) api-client add portal \(directory)"))
    credentials = "portal:\(secret)"

    let token = try BuiltProgram.path("approval-token")
    var service = "\(token) serve"
    if isSplit {
      let relay = "--relay \(Self.folder)/relay.sock"
      let networkLog = "\(Self.folder)/network.log"
      try Self.begin("\(token) network \(relay)", log: networkLog)
      _ = try await eventually("a network process that is ready") {
        try contents(networkLog).contains("ready") ? true : nil
      }
      service = "unshare --net \(token) device \(relay)"
    }
    let settings = "--config \(Self.folder)/token.toml --board boards/bench-kernel/board.toml"
    try Self.begin("\(service) \(settings) --state \(Self.state)", log: Self.log)
    _ = try await eventually("a service that is ready") { try contents(Self.log).contains("ready") ? true : nil }
    try Self.begin(
      "\(token) enroll '\(uri)' --name alice --state \(Self.state)",
      log: "\(Self.folder)/enrol"
    )
    try await type(Self.pin, when: "new PIN wanted")
    try await type(Self.pin, when: "new PIN wanted, a second time")
    try await log("] connected to")
    device = try field("id", of: try portal("GET", "/users/alice/devices"))
  }

  private static func add(_ authenticators: SiteAuthenticators) throws {
    for (name, text) in [("token.toml", "[authenticators]")] + authenticators.files(folder) {
      try run("mkdir -p $(dirname \(folder)/\(name))\ncat >\(folder)/\(name) <<'END'\n\(text)\nEND")
      if text.hasPrefix("#!") { try run("chmod +x \(folder)/\(name)") }
    }
    try run("sed -i 's/^pin = true$/&\\n\(authenticators.switches)/' \(folder)/server/config.toml")
    try run("cat >>\(folder)/server/config.toml <<'END'\n\(authenticators.tables(folder))\nEND")
  }

  /// Registers an authenticator, as the user who holds the button, and who types the PIN first if no user is logged in.
  /// - Parameter answer: what the user does after that.
  func register(_ authenticator: String, isLoggedIn: Bool, answer: () async throws -> Void = {}) async throws {
    let token = try BuiltProgram.path("approval-token")
    try Self.begin(
      "\(token) authenticator register alice \(authenticator) --state \(Self.state)",
      log: "\(Self.folder)/registration")
    if !isLoggedIn { try await type(Self.pin, when: "PIN wanted") }
    for _ in 1...5 {
      try await shows("confirmation wanted")
      try await Task.sleep(for: .milliseconds(800))
      try await hold()
      let isHeld = try? await eventually("an end of the prompt", within: .seconds(10)) {
        try meaning().hasSuffix("confirmation wanted") ? nil : true
      }
      if isHeld != nil { break }
    }
    try await answer()
    try await log("authenticator-registered account alice: \(authenticator)")
  }

  /// Waits until the command of the registration has said it.
  func registrationSays(_ part: String) async throws {
    _ = try await eventually(part) { try contents("\(Self.folder)/registration").contains(part) ? true : nil }
  }

  deinit { _ = system("kill -KILL $(cat \(Self.folder)/*.process) 2>/dev/null; panel unplug 2>/dev/null") }

  /// Runs a shell command line, which must succeed.
  @discardableResult
  static func run(_ line: String) throws -> String {
    let outcome = try shell(line)
    guard outcome.status == 0 else { throw BenchError(what: "\(line): \(outcome)") }
    return outcome.output
  }

  private static func begin(_ line: String, log: String) throws {
    guard system(": >\(log); \(line) >\(log) 2>&1 </dev/null & echo $! >\(log).process") == 0 else {
      throw BenchError(what: line)
    }
  }

  // MARK: The portal

  private func portal(_ method: String, _ path: String, _ fields: [String] = []) throws -> String {
    let form = fields.map { " --data-urlencode '\($0)'" }.joined()
    return try Self.run(
      "curl -sS -m 30 --cacert \(Self.folder)/server/ca.pem -u \(credentials) -X \(method)\(form)"
        + " https://127.0.0.1:\(serverPort)/oauth/api/v4\(path)")
  }

  /// Begins a transaction and waits until the token prompts for it: `login` requires a hold, `payment` the PIN.
  func ask(_ type: String) async throws -> String {
    let fields = [
      "type=\(type)", "user_id=alice", "device_id=\(device)", "callback_uri=http://127.0.0.1:9/", "message=?",
    ]
    let transaction = try field("transaction_id", of: try portal("POST", "/authenticate/user", fields))
    _ = try await log("opened request \(transaction)")
    return transaction
  }

  /// The result for the portal, once it is final.
  func isAuthenticated(_ transaction: String) async throws -> Bool {
    try await eventually("an end of \(transaction)") {
      let result = try portal("GET", "/authenticate/transaction/\(transaction)").filter { $0 != " " }
      if result.contains("\"is_authenticated\":true") { return true }
      return result.contains("\"reason\":") ? false : nil
    }
  }

  // MARK: The token

  /// The status as the command prints it. A process takes long to start here.
  func printedStatus() throws -> String { try Self.run("token status --state \(Self.state)") }

  func status() throws -> ServiceStatus {
    try ControlClient(path: ControlRequest.socket(in: Self.state)).call(.status, ServiceStatus.self)
  }

  /// Failed and remaining attempts with the PIN.
  func attempts() throws -> [Int] {
    try status().pins?.first.map { [$0.previousFailureCount, $0.remainingFailureCount] } ?? []
  }

  func meaning() throws -> String { try status().led?.meaning ?? "" }

  func shows(_ meaning: String) async throws {
    _ = try await eventually("\"\(meaning)\" on the LED") { try self.meaning() == meaning ? true : nil }
  }

  /// Waits until the board has no fault.
  func troublesEnd() async throws {
    _ = try await eventually("the end of the trouble") { try status().troubles ?? [] == [] ? true : nil }
  }

  /// Waits until `part` is in the log `count` times. The error has the end of the log.
  func log(_ part: String, times count: Int = 1, within limit: Duration = .seconds(60)) async throws {
    func lines() throws -> [Substring] { try contents(Self.log).split(separator: "\n") }
    do {
      _ = try await eventually("\"\(part)\" in the log, \(count) times", within: limit) {
        try lines().count { $0.contains(part) } >= count ? true : nil
      }
    } catch let error as WaitTimeoutError {
      throw BenchError(what: ([error.description[...]] + (try lines().suffix(12))).joined(separator: "\n    "))
    }
  }

  /// The number of wake-ups of the service within `seconds`. A thread that ends in the meantime is not counted.
  func wakeUps(within seconds: Int) async throws -> Int {
    let process = try contents("\(Self.log).process")
    let before = try sleepsByThread(in: process)
    try await Task.sleep(for: .seconds(seconds))
    return try sleepsByThread(in: process).reduce(0) { $0 + $1.value - before[$1.key, default: 0] }
  }

  func hasLogged(_ part: String) throws -> Bool { try contents(Self.log).contains(part) }

  // MARK: The user

  /// Acts after the guard time. A user repeats an ignored action, and so does this function.
  func act(until part: String, _ act: () async throws -> Void) async throws {
    for _ in 1...5 {
      try await Task.sleep(for: .milliseconds(800))
      try await act()
      if (try? await log(part, within: .seconds(10))) != nil { return }
    }
    throw BenchError(what: "no reaction in the log: \(part)")
  }

  func hold(_ line: Bench.Line = .button) async throws {
    try bench.press(line)
    try await Task.sleep(for: .milliseconds(1200))
    try bench.release(line)
  }

  /// Types digits and Enter when the LED shows the prompt. A user repeats an entry that the token did not take, and so
  /// does this function: one within the guard time, or one of which it lost digits.
  func type(_ digits: String, when wanted: String) async throws {
    for _ in 1...5 {
      try await shows(wanted)
      try await Task.sleep(for: .milliseconds(800))
      try press(digits, enter: true)
      let reaction = try? await eventually("a reaction", within: .seconds(10)) {
        let meaning = try meaning()
        return meaning.hasSuffix(wanted) || Self.notTaken.contains { meaning.hasPrefix($0) } ? nil : true
      }
      if reaction != nil { return }
    }
    throw BenchError(what: "no reaction to an entry for \(wanted)")
  }

  /// The meanings of the LED while an entry has not been taken: it is not complete, it was ignored, a reader failed
  /// beside it, or digits are missing.
  private static let notTaken = ["digits typed", "press or key ignored", "not one of the choices", "new PIN refused"]

  func press(_ digits: String, enter: Bool = false) throws {
    let usages = digits.utf8.map { $0 == 0x30 ? 0x62 : 0x58 + $0 - 0x30 } + (enter ? [0x58] : [])
    try Self.run("panel type \(usages.map(String.init).joined(separator: " "))")
  }
}

/// The string value of a key in a JSON object. No key of these objects occurs twice.
func field(_ key: String, of json: String) throws -> String {
  let parts = json.split(separator: "\"", omittingEmptySubsequences: false)
  guard let index = parts.firstIndex(of: key[...]), index + 2 < parts.count else {
    throw BenchError(what: "no \(key) in \(json)")
  }
  return String(parts[index + 2])
}
