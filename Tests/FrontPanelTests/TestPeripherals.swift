// SPDX-License-Identifier: Apache-2.0
import FrontPanel
import Synchronization

final class TestButton: Button {
  let events: AsyncStream<ButtonEvent>
  let continuation: AsyncStream<ButtonEvent>.Continuation

  init() { (events, continuation) = AsyncStream.makeStream() }
}

final class TestIndicator: Indicator {
  private let state = Mutex<[LEDColour?]>([])

  var lit: [LEDColour?] { state.withLock { $0 } }
  func light(_ colour: LEDColour?) { state.withLock { $0.append(colour) } }
}

final class TestSounder: Sounder {
  private let state = Mutex<[Bool]>([])

  var heard: [Bool] { state.withLock { $0 } }
  func sound(_ isOn: Bool) { state.withLock { $0.append(isOn) } }
}
