// SPDX-License-Identifier: Apache-2.0
import Secrets
import Synchronization

/// Records keys as text: digits as themselves, `E`nter, `D`elete, `C`lear, `X` for escape, `O`ther.
final class SinkOfKeys: KeySink {
  private let state = Mutex("")

  var keys: String { state.withLock { $0 } }

  func press(_ kind: KeyKind, digit: UInt8) {
    let key: Character =
      switch kind {
      case .digit: Character(Unicode.Scalar(digit))
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
