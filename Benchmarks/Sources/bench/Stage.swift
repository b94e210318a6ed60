// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import ReferenceProtocol

/// The environment of a run: its programs and its directory, which is deleted afterwards.
final class Stage {
  let programs: String
  /// On a disk, because every answer is stored durably before it is sent: /var/tmp is on a disk, /tmp may be in memory.
  let directory: String

  init(programs: String) throws {
    self.programs = programs
    var template = Array("/var/tmp/approval-bench.XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw BenchError("no directory in /var/tmp: \(String(cString: strerror(errno)))")
    }
    directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  func clear() { try? FileManager.default.removeItem(atPath: directory) }

  func start(_ program: String, _ arguments: [String], environment: [String: String] = [:]) throws -> Child {
    try Child("\(programs)/\(program)", arguments, log: "\(directory)/\(program).log", environment: environment)
  }

  func run(_ program: String, _ arguments: [String]) throws -> [UInt8] {
    try Child.run("\(programs)/\(program)", arguments, log: "\(directory)/\(program).log")
  }
}

/// A running token with the simulated board, enrolled.
final class Token {
  /// The variables of the installed service that affect memory and start.
  static let serviceEnvironment = [
    "GNUTLS_NO_IMPLICIT_INIT": "1", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
  ]

  let user: String
  let readings: ProcessReadings
  let control: ControlSocket
  private let child: Child
  /// The network process of a service of two processes.
  private let network: Child?
  /// Of the network process.
  let networkReadings: ProcessReadings?

  /// - Parameters:
  ///   - environment: variables of the service, but not of the enrollment.
  ///   - isSplit: whether the service is two processes.
  init(
    on stage: Stage, user: String, at server: TokenServer, environment: [String: String] = [:], isSplit: Bool = false
  ) throws {
    self.user = user
    let state = "\(stage.directory)/\(user)"
    _ = try stage.run("approval-token", ["enroll", server.add(user: user).uri, "--state", state])
    let environment = Self.serviceEnvironment.merging(environment) { _, own in own }
    let relay = ["--relay", state + ".relay"]
    network = isSplit ? try stage.start("approval-token-network", relay, environment: environment) : nil
    if let network, try network.readLine() != "ready" { throw BenchError("the network process is not ready") }
    networkReadings = network.map { ProcessReadings(processID: $0.processID) }
    child = try stage.start(
      "approval-tokend", (isSplit ? ["device"] + relay : ["serve"]) + ["--state", state], environment: environment)
    guard try child.readLine() == "ready" else { throw BenchError("approval-tokend is not ready") }
    readings = ProcessReadings(processID: child.processID)
    control = ControlSocket(path: state + "/control.sock")
  }

  /// Starts first and enrolls then, with a PIN that is typed.
  init(on stage: Stage, user: String, choosing pin: String, at server: TokenServer) throws {
    self.user = user
    let state = "\(stage.directory)/\(user)"
    (network, networkReadings) = (nil, nil)
    child = try stage.start("approval-tokend", ["serve", "--state", state])
    guard try child.readLine() == "ready" else { throw BenchError("approval-tokend is not ready") }
    readings = ProcessReadings(processID: child.processID)
    control = ControlSocket(path: state + "/control.sock")
    let led = try control.followLED()
    let enrollment = try stage.start("approval-token", ["enroll", server.add(user: user).uri, "--state", state])
    try control.choose(pin, asBy: led)
    _ = try enrollment.readLine()
    _ = try led.waitForLED("idle, connected")
  }

  func end() {
    child.end()
    network?.end()
  }
}
