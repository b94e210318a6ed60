// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import FoundationEssentials
import Glibc
import JSONValues
import Threads

/// A token with the simulated board, driven over its control socket. One that the bench has started consists of a
/// device process and a network process, as on a board; another one is only attached to.
actor TokenProgram {
  /// What is wrong with the token's clock.
  enum ClockFault: Sendable {
    case none
    /// As on a board without a real-time clock and without a network.
    case in1970
  }

  nonisolated let state: String
  nonisolated let isOwn: Bool
  private let program: String
  private let folder: String
  private let name: String
  /// A library for `LD_PRELOAD` that sets back the wall clock.
  private let clockLibrary: String?
  private var device: ChildProcess?
  private var network: ChildProcess?
  private var clock = ClockFault.none
  private var commands = 0

  private nonisolated var client: ControlClient { ControlClient(path: ControlRequest.socket(in: state)) }
  private nonisolated var relay: String { "\(folder)/\(name).relay" }

  /// A token that the bench starts.
  /// - Parameters:
  ///   - name: of its state directory in `folder`.
  ///   - clockLibrary: sets back the wall clock by `WALL_CLOCK_SECONDS_BACK`; nil if there is none.
  init(program: String, folder: String, name: String, clockLibrary: String?) {
    (state, isOwn) = (folder + "/" + name, true)
    (self.program, self.folder, self.name, self.clockLibrary) = (program, folder, name, clockLibrary)
  }

  /// A token that runs already.
  init(program: String, folder: String, attachedTo state: String) {
    (self.state, isOwn, clockLibrary) = (state, false, nil)
    (self.program, self.folder, name) = (program, folder, "attached")
  }

  var isRunning: Bool { isOwn ? device?.isRunning == true : client.isServiceRunning }
  var isNetworkRunning: Bool { !isOwn || network?.isRunning == true }
  var isClockWrong: Bool { clock != .none }
  nonisolated var hasClock: Bool { isOwn && clockLibrary != nil }

  /// Starts both processes, or checks that the service has a simulated board. After an error neither process runs.
  func start() async throws {
    guard isOwn else { return try await requireSimulatedBoard() }
    do {
      async let other: Void = startNetwork()
      try await startDevice()
      try await other
    } catch {
      await stop()
      throw error
    }
  }

  private func requireSimulatedBoard() async throws {
    let status: JSONValue
    do { status = try await call(.status) } catch { throw BenchError("the token in \(state): \(error)") }
    guard status["simulated"]?.bool == true else {
      throw BenchError(
        "the token in \(state) has the board \(status["board"]?.text ?? "of an earlier release"): only a simulated "
          + "board can be shown and used; start it with --board simulated")
    }
  }

  private func startDevice() async throws {
    let configuration = "\(folder)/\(name).toml"
    try Self.configuration.write(toFile: configuration, atomically: false, encoding: .utf8)
    device = try await start(
      "\(name)-device",
      ["device", "--relay", relay, "--state", state, "--board", "simulated", "--config", configuration])
  }

  func startNetwork() async throws {
    if isOwn, network?.isRunning != true {
      network = try await start("\(name)-network", ["network", "--relay", relay])
    }
  }

  /// Its readers, for the authenticators of the bench's token server.
  private static let configuration = """
    [authenticators]
    simulated_fingerprint = "finger"
    simulated_badge = "badge"
    simulated_key = "key"
    """

  private func start(_ name: String, _ words: [String]) async throws -> ChildProcess {
    var command = [program] + words
    if clock == .in1970, let clockLibrary {
      // Ten minutes after the epoch.
      let back = wallClockMilliseconds() / 1000 - 600
      command = ["/usr/bin/env", "LD_PRELOAD=\(clockLibrary)", "WALL_CLOCK_SECONDS_BACK=\(back)"] + command
    }
    let child = try await ChildProcess.start(name, command, folder: folder)
    do {
      try await wait(.seconds(20), for: "the token should be ready") {
        guard child.isRunning else { throw BenchError("the token has ended: \(child.errors(atMost: 1000))") }
        return child.output.contains("ready\n")
      }
    } catch {
      await child.stop()
      throw error
    }
    return child
  }

  func stop() async {
    let (formerDevice, formerNetwork) = (device, network)
    async let end: Void? = formerNetwork?.stop()
    await formerDevice?.stop()
    await end
    if device === formerDevice { device = nil }
    if network === formerNetwork { network = nil }
  }

  /// What a power loss leaves: both processes are killed.
  func losePower() async {
    device?.send(SIGKILL)
    _ = await device?.end()
    device = nil
    await loseNetwork()
  }

  /// Kills the network process.
  func loseNetwork() async {
    network?.send(SIGKILL)
    _ = await network?.end()
    network = nil
  }

  /// For the next start.
  func setClock(_ fault: ClockFault) { clock = fault }

  /// One request to the running service.
  /// - Parameter seconds: the longest wait for anything of the answer; nil where a user or a server is waited for.
  nonisolated func call(
    _ request: ControlRequest, within seconds: Int? = ControlClient.patience
  ) async throws -> JSONValue {
    let client = client
    return try await onThread { try client.call(request, JSONValue.self, within: seconds) }
  }

  /// Follows a stream of the service, and again after each of its starts, until `take` returns false.
  /// - Parameter ended: called once for each end of the stream, also of one that has never begun.
  nonisolated func follow(
    _ request: ControlRequest, ended: @escaping @Sendable () -> Void = {},
    take: @escaping @Sendable (JSONValue) -> Bool
  ) {
    let client = client
    let hasStarted = detachThread {
      var (goesOn, retry) = (true, Retry())
      while goesOn {
        try? client.follow(request, JSONValue.self) { value in
          retry.answered()
          goesOn = take(value)
          return goesOn
        }
        let (isFirst, pause) = retry.ended()
        if isFirst { ended() }
        if goesOn { usleep(useconds_t(pause / Duration.microseconds(1))) }
      }
    }
    if !hasStarted { ended() }
  }

  /// The newest lines of the audit chain.
  func auditLines() async throws -> [JSONValue] { try await list("log", "--lines", "40") }

  func accountNames() async throws -> [String] { try await list("accounts").compactMap { $0["account"]?.text } }

  /// The list that a command prints.
  private func list(_ words: String...) async throws -> [JSONValue] {
    commands += 1
    let child = try await ChildProcess.start(
      "\(name)-command-\(commands)", [program] + words + ["--json", "--state", state], folder: folder)
    let status = await child.end()
    defer { for file in [child.outputFile, child.errorFile] { unlink(file) } }
    guard status == 0 else { throw BenchError("approval-token \(words[0]): \(child.errors(atMost: 500))") }
    return JSONValue(parsing: Array(child.output.utf8))?.list ?? []
  }
}
