// SPDX-License-Identifier: Apache-2.0
package import FrontPanel
package import MobileAuth
import Secrets
import Synchronization

/// A simulated keypad. Its keys are pressed by calls.
package final class SimulatedKeypad: Keypad {
  /// A key, by its name on the command line: `0` to `9`, `enter`, `delete`, `clear`, `escape`.
  package struct Key: Sendable {
    let press: KeyPress

    /// Nil if no key has this name.
    package init?(_ name: String) {
      switch name {
      case "enter": press = .enter
      case "delete": press = .delete
      case "clear": press = .clear
      case "escape": press = .escape
      default:
        guard name.utf8.count == 1, let digit = name.utf8.first, (0x30...0x39).contains(digit) else { return nil }
        press = .digit(TypedDigit(digit))
      }
    }
  }

  /// An action on the keypad by name: a key press, unplugging or plugging in.
  package enum Action: Sendable {
    case press(Key)
    case unplug, plugIn

    /// Nil if no action has this name.
    package init?(_ name: String) {
      switch name {
      case "unplug": self = .unplug
      case "plug-in": self = .plugIn
      default:
        guard let key = Key(name) else { return nil }
        self = .press(key)
      }
    }
  }

  /// - Returns: false if the action is a key of an unplugged keypad, which has no effect.
  @discardableResult
  package func perform(_ action: Action) -> Bool {
    switch action {
    case .press(let key): return press(key)
    case .unplug: unplug()
    case .plugIn: plugIn()
    }
    return true
  }

  private let channel: KeypadChannel
  private let connected = Mutex(true)

  package init(clock: any TokenClock) { channel = KeypadChannel(clock: clock) }

  package var events: AsyncStream<KeypadEvent> { channel.events }

  /// - Returns: false if the keypad is unplugged: the key then has no effect.
  @discardableResult
  package func press(_ key: Key) -> Bool {
    connected.withLock { isConnected in
      if isConnected { channel.press(key.press) }
      return isConnected
    }
  }

  /// Simulates unplugging the keypad.
  package func unplug() {
    connected.withLock { $0 = false }
    channel.keypadIsUnavailable("unplugged")
  }

  package func plugIn() {
    connected.withLock { $0 = true }
    channel.keypadIsAvailable()
  }

  package var isConnected: Bool { connected.withLock { $0 } }
}
