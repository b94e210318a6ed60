// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ControlProtocol
import DisplayText
import FrontPanel
import Glibc
import Threads

extension Simulate {
  struct Panel: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "panel", abstract: "Draw the LED in color and use the keyboard as button and keypad, until q.")

    @Option(help: "A shell command for the key r; it starts a request as a portal does.")
    var ask: String?

    @OptionGroup var state: StateOption

    func run() throws {
      try reporting {
        guard isatty(0) == 1, isatty(1) == 1 else { throw CommandError(.usage, "the panel needs a terminal") }
        let client = ControlClient(path: state.controlSocket)
        _ = try client.call(.led, LEDStatus.self, within: ControlClient.patience)
        print(
          "keys: h hold (accept)   d double press (deny)   n not me   p short press   0-9 Enter Backspace c clear   "
            + "x escape   \(ask == nil ? "" : "r new request   ")q quit"
        )
        let terminal = RawTerminal()
        defer { terminal.restore() }
        // Separate threads, because these calls block and the thread pool of a small board has no spare thread. They
        // end with the process.
        let isFollowed = detachThread {
          try? client.follow(.followLED, LEDStatus.self) { led in
            draw(led)
            return true
          }
          // The other thread waits for a key.
          terminal.restore()
          print("")
          Glibc.exit(reported(CommandError.endOfLines, nil).rawValue)
        }
        guard isFollowed else { throw CommandError(.unavailable, "the system has no thread left") }
        while let key = terminal.key(), key != "q", key != RawTerminal.controlC { press(key, client) }
        print("")
      }
    }

    /// Runs gestures concurrently with the drawing, so that the LED keeps updating.
    private func press(_ key: Character, _ client: ControlClient) {
      if let input = SimulatedInput(panelKey: key) {
        _ = detachThread { _ = try? client.call(.simulate(input), Done.self) }
      }
      if key == "r", let ask { runShell(ask) }
    }
  }
}

extension SimulatedInput {
  /// What a key of the panel stands for; nil for a key without a meaning at the board.
  init?(panelKey key: Character) {
    switch key {
    case "h": self = .hold(milliseconds: 1000)
    case "p": self = .hold(milliseconds: 100)
    case "n": self = .notMe
    case "d": self = .doublePress
    case "0"..."9": self = .keys([String(key)])
    case "\r", "\n": self = .keys(["enter"])
    case "\u{7F}", "\u{08}": self = .keys(["delete"])
    case "c": self = .keys(["clear"])
    case "x": self = .keys(["escape"])
    default: return nil
    }
  }
}

private func draw(_ led: LEDStatus) {
  let color = led.isLit ? LEDColor(rawValue: led.color) : nil
  let isColored = environment("NO_COLOR") == nil
  let lamp = color.map { isColored ? "\u{1B}[38;5;\($0.terminalColor)m●\u{1B}[0m" : "● \($0.rawValue)" } ?? "○"
  // Only one line can be drawn again.
  let meaning = led.words.cut(atMost: max(8, terminalColumns - (isColored ? 6 : 16)))
  print("\r\u{1B}[K  \(lamp)  \(meaning)", terminator: "")
  fflush(nil)
}

/// The width of the terminal in characters; 80 if it is not known.
private var terminalColumns: Int {
  var size = winsize()
  return ioctl(1, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
}

extension LEDColor {
  /// The number in the 256-color palette of terminals.
  fileprivate var terminalColor: Int {
    switch self {
    case .amber: 214
    case .blue: 27
    case .green: 46
    case .magenta: 201
    case .violet: 99
    case .orange: 208
    case .red: 196
    case .white: 231
    case .dimGreen: 22
    case .dimRed: 52
    }
  }
}

/// Reads single keys without echo and signals; restores the terminal at the end.
private struct RawTerminal {
  /// Ctrl-C is read as a key, so that the terminal is restored before the exit.
  static let controlC: Character = "\u{03}"

  private let former: termios

  init() {
    var settings = termios()
    tcgetattr(0, &settings)
    former = settings
    settings.c_lflag &= ~tcflag_t(ICANON | ECHO | ISIG)
    tcsetattr(0, TCSANOW, &settings)
  }

  func restore() {
    var settings = former
    tcsetattr(0, TCSANOW, &settings)
  }

  func key() -> Character? {
    var byte: UInt8 = 0
    while true {
      let count = read(0, &byte, 1)
      if count < 0, errno == EINTR { continue }
      return count == 1 ? Character(Unicode.Scalar(byte)) : nil
    }
  }
}

/// Starts a shell command without waiting; its output is discarded.
private func runShell(_ command: String) {
  let report = #"printf '\r\nthe request failed: exit code %s\r\n' $?"#
  _ = system("( ( \(command) ) </dev/null >/dev/null 2>&1 || \(report) ) &")
}
