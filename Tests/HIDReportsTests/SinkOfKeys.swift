// SPDX-License-Identifier: Apache-2.0
import Secrets
import Synchronization

/// Records keys as text: digits as themselves, `E`nter, `D`elete, `C`lear, `X` for escape, `O`ther.
final class SinkOfKeys: KeySink {
  private let state = Mutex("")

  var keys: String { state.withLock { $0 } }

  func press(_ press: KeyPress) {
    let key: Character =
      switch press {
      case .digit(let digit): digit.withExposedSecret { Character(Unicode.Scalar($0)) }
      case .enter: "E"
      case .delete: "D"
      case .clear: "C"
      case .escape: "X"
      case .other: "O"
      }
    state.withLock { $0.append(key) }
  }

  func keypadIsUnavailable(_ why: String) {}
  func keypadIsAvailable() {}
}
