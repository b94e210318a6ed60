// SPDX-License-Identifier: Apache-2.0
import FrontPanel
import Synchronization

final class TestButton: Button {
  let events: AsyncStream<ButtonEvent>
  let continuation: AsyncStream<ButtonEvent>.Continuation

  init() { (events, continuation) = AsyncStream.makeStream() }
}

final class TestIndicator: Indicator {
  private let state = Mutex<[LEDColor?]>([])

  var lit: [LEDColor?] { state.withLock { $0 } }
  func light(_ color: LEDColor?) { state.withLock { $0.append(color) } }
}

final class TestSounder: Sounder {
  private let state = Mutex<[Bool]>([])

  var heard: [Bool] { state.withLock { $0 } }
  func sound(_ isOn: Bool) { state.withLock { $0.append(isOn) } }
}
