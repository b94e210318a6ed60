// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ControlProtocol
import Glibc

struct SelfTestCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "self-test", abstract: "Let the running service test what this board does alone.",
    discussion: """
      The vault can be read, the lines of the button and the LED are held, and the request handler reacts. No network is \
      needed: an outage is no failure; neither is a keypad that is unplugged. For programs that decide whether a new \
      version is good.

      Exits with 1 if a check failed, and with 69 if no service runs.
      """)

  /// In seconds. The service itself waits at most 10 s for its request handler.
  private static let longestTest = 20

  @Option(help: ArgumentHelp("Repeat a test that fails, or finds no service, for this time.", valueName: "seconds"))
  var within = 0
  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func validate() throws {
    guard (0...3600).contains(within) else { throw ValidationError("--within needs 0 to 3600 seconds") }
  }

  func run() throws {
    try reporting(json) {
      let limit = ContinuousClock.now + .seconds(within)
      while true {
        let isLast = ContinuousClock.now >= limit
        do {
          let result = try ControlClient(path: state.controlSocket).call(
            .selfTest, SelfTestResponse.self, within: Self.longestTest)
          if result.passed || isLast {
            json.print(result, text: Self.describe)
            guard result.passed else { throw ExitCode(1) }
            return
          }
        } catch let error as CommandError where error.code == .unavailable && !isLast {}
        sleep(1)
      }
    }
  }

  private static func describe(_ result: SelfTestResponse) -> String {
    result.checks.map { "\($0.failure == nil ? "good" : "BAD ")  \($0.subject)\($0.failure.map { ": \($0)" } ?? "")" }
      .joined(separator: "\n")
  }
}
