// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ControlProtocol
import FrontPanel
import Glibc

struct Simulate: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulate", abstract: "Control the simulated board: press its button, read its LED.",
    discussion: """
      Only for a service with a simulated board. Any process that may open the control socket can do this. A press \
      or key is reported as ignored if nothing is shown, the guard time has not passed, or the keypad is unplugged; \
      not if what is shown wants another input.
      """,
    subcommands: [
      Press.self, Hold.self, Double.self, NotMe.self, Keys.self, Custom.self, Key.self, Badge.self, Finger.self,
      LED.self, Panel.self,
    ])

  struct Press: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "press", abstract: "Press the button briefly: show the next pending request.")
    @OptionGroup var state: StateOption

    func run() throws { try hold(milliseconds: 100, state) }
  }

  struct Hold: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "hold", abstract: "Hold the button for some seconds, then release it.")
    @Argument(help: "Seconds, 0.001 to 60.")
    var seconds: Swift.Double
    @OptionGroup var state: StateOption

    func validate() throws {
      guard (0.001...60).contains(seconds) else { throw ValidationError("hold takes 0.001 to 60 seconds") }
    }

    func run() throws { try hold(milliseconds: Int64(seconds * 1000), state) }
  }

  struct Double: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "double", abstract: "Press twice: deny.")
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
      commandName: "keys", abstract: "Press keys of the keypad in sequence.",
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

  struct Custom: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "custom", abstract: "Answer for the authenticator that is asked now.",
      discussion: "For the authenticators that the configuration names as simulated.")

    @Argument(help: "The data, as text.")
    var data: String?
    @Option(help: "Cancel, with this reason: the request is denied.")
    var cancel: String?
    @Flag(help: "Ask for the PIN instead.")
    var fallback = false
    @OptionGroup var state: StateOption

    func validate() throws {
      guard [data != nil, cancel != nil, fallback].count(where: \.self) == 1 else {
        throw ValidationError("give the data, --cancel REASON or --fallback")
      }
    }

    func run() throws {
      let answer: SimulatedAnswer =
        if let data { .data(data) } else if let cancel { .cancel(reason: cancel) } else { .fallback }
      try reporting { try perform(.authenticator(answer), state) }
    }
  }

  struct Key: ParsableCommand {
    enum Action: String, ExpressibleByArgument, CaseIterable { case touch, none }

    static let configuration = CommandConfiguration(
      commandName: "key", abstract: "Touch the simulated security key, or unplug it.",
      discussion: "It is unplugged until it is touched.")

    @Argument(help: "touch or none.")
    var action: Action
    @OptionGroup var state: StateOption

    func run() throws { try reporting { try perform(.authenticator(action == .touch ? .touch : .noKey), state) } }
  }

  struct Badge: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "badge", abstract: "Present a simulated badge, or unplug its reader.",
      discussion: "Each name is another badge; none unplugs the reader until a badge is presented.")

    @Argument(help: "The name of a badge, or none.")
    var name: String
    @OptionGroup var state: StateOption

    func run() throws { try reporting { try perform(.authenticator(name == "none" ? .noBadge : .badge(name)), state) } }
  }

  struct Finger: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "finger", abstract: "Put a finger on the simulated fingerprint reader.",
      discussion: "The finger that a registration was given matches it; \"stranger\" matches none.")

    @Argument(help: "A name for the finger, \"stranger\", or \"retry\" for a scan that fails.")
    var finger: String
    @OptionGroup var state: StateOption

    func run() throws {
      let answer: SimulatedAnswer = finger == "retry" ? .retry(reason: "not centered") : .finger(finger)
      try reporting { try perform(.authenticator(answer), state) }
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
        guard follow else { return show(try client.call(.led, LEDStatus.self, within: ControlClient.patience)) }
        try client.follow(.followLED, LEDStatus.self) { led in
          show(led)
          // Flush each line: a pipe is fully buffered otherwise.
          try flushResults()
          return true
        }
        throw CommandError.endOfLines
      }
    }

    private func show(_ led: LEDStatus) {
      json.print(led) { "\($0.isLit ? $0.color : "dark")  (\($0.words))" }
    }
  }
}

private func hold(milliseconds: Int64, _ state: StateOption) throws {
  try reporting { try perform(.hold(milliseconds: milliseconds), state) }
}

/// Sends the input and prints why it was ignored, if it was: no request was shown, the guard time had not passed,
/// or the keypad was unplugged.
private func perform(_ input: SimulatedInput, _ state: StateOption) throws {
  let done = try ControlClient(path: state.controlSocket).call(.simulate(input), Done.self)
  if let ignored = done.ignored { print("ignored: \(ignored)") }
}
