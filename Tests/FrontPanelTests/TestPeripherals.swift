// SPDX-License-Identifier: Apache-2.0
import FrontPanel
import Synchronization

@testable import Secrets

final class TestButton: Button {
  let events: AsyncStream<ButtonEvent>
  let continuation: AsyncStream<ButtonEvent>.Continuation

  init() { (events, continuation) = AsyncStream.makeStream() }
}

final class TestIndicator: Indicator {
  private let state = Mutex<[(color: LEDColor?, context: LEDContext)]>([])

  var lit: [LEDColor?] { state.withLock { $0.map(\.color) } }
  /// What the LED showed each time that it was switched.
  var contexts: [LEDContext] { state.withLock { $0.map(\.context) } }
  func light(_ color: LEDColor?, in context: LEDContext) { state.withLock { $0.append((color, context)) } }
}

final class TestSounder: Sounder {
  private let state = Mutex<[Bool]>([])

  var heard: [Bool] { state.withLock { $0 } }
  func sound(_ isOn: Bool) { state.withLock { $0.append(isOn) } }
}

/// Makes digits and observes how many of them are still in memory.
final class WatchedDigits: Sendable {
  private struct Reference { weak var byte: SecretBytes? }

  private let made = Mutex<[Reference]>([])

  var count: Int {
    made.withLock { made in
      made.removeAll { $0.byte == nil }
      return made.count
    }
  }

  func make(_ ascii: UInt8) -> TypedDigit {
    let digit = TypedDigit(ascii)
    made.withLock { $0.append(Reference(byte: digit.byte)) }
    return digit
  }
}
