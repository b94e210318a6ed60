// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ControlProtocol
import FrontPanel
import Glibc

struct Simulate: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Control the simulated board: press its button, read its LED.",
    discussion: "Only for a service with a simulated board. Any process that may open the control socket can do this.",
    subcommands: [Press.self, Hold.self, Double.self, NotMe.self, Keys.self, LED.self, Panel.self])

  struct Press: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Press the button briefly: show the next pending request.")
    @OptionGroup var state: StateOption

    func run() throws { try hold(milliseconds: 100, state) }
  }

  struct Hold: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Hold the button for some seconds, then release it.")
    @Argument(help: "Seconds, 0.001 to 60.")
    var seconds: Swift.Double
    @OptionGroup var state: StateOption

    func validate() throws {
      guard (0.001...60).contains(seconds) else { throw ValidationError("hold takes 0.001 to 60 seconds") }
    }

    func run() throws { try hold(milliseconds: Int64(seconds * 1000), state) }
  }

  struct Double: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Press twice: deny.")
    @OptionGroup var state: StateOption

    func run() throws {
      try reporting {
        try perform(.doublePress, state)
      }
    }
  }

  struct NotMe: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "not-me", abstract: "Hold very long: deny and report that it was not you.")
    @OptionGroup var state: StateOption

    func run() throws {
      try reporting { try perform(.notMe, state) }
    }
  }

  struct Keys: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Press keys of the keypad in sequence.",
      discussion: "Keys: \(SimulatedInput.keyNames). Example: simulate keys 1 3 5 7 9 enter")

    @Argument(help: "Keys.")
    var keys: [String]
    @OptionGroup var state: StateOption

    func run() throws {
      try reporting {
        try perform(.keys(keys), state)
      }
    }
  }

  struct LED: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "led", abstract: "Show the color and meaning of the LED.")

    @Flag(help: "Print a line for every change, until interrupted.")
    var follow = false
    @OptionGroup var state: StateOption
    @OptionGroup var json: JSONOption

    func run() throws {
      try reporting(json) {
        let client = ControlClient(path: state.controlSocket)
        try client.follow(follow ? .followLED : .led, LEDStatus.self) { led in
          json.print(led) { "\($0.isLit ? $0.color : "dark")  (\($0.meaning))" }
          // Flush each line: a pipe is fully buffered otherwise.
          fflush(nil)
          return follow
        }
      }
    }
  }
}

private func hold(milliseconds: Int64, _ state: StateOption) throws {
  try reporting { try perform(.hold(milliseconds: milliseconds), state) }
}

/// Sends the input and prints why it was ignored, if it was: no request was shown, or the guard time had not passed.
private func perform(_ input: SimulatedInput, _ state: StateOption) throws {
  let done = try ControlClient(path: state.controlSocket).call(.simulate(input), Done.self)
  if let ignored = done.ignored { print("ignored: \(ignored)") }
}
