// SPDX-License-Identifier: Apache-2.0
import CUSB

/// The reason why the keypad cannot be used. The description names the remedy where there is one. Contains no typed
/// key.
package enum USBKeypadError: Error, Equatable, Sendable, CustomStringConvertible {
  /// No matching device is plugged in.
  case notPluggedIn
  case unplugged
  /// The device node may not be opened; `group` is the group that owns it.
  case notPermitted(path: String, group: String)
  /// Another program has claimed one of the keypad's interfaces.
  case busy(interface: Int)
  /// The device has no interface with the boot protocol of HID 1.11, appendix B.
  case noBootKeyboard
  /// The device sent data that a boot keyboard never sends. It is ignored until it is plugged in again.
  case misbehaved(String)
  /// A call of libusb failed; `name` is the name of libusb's error code.
  case failed(call: String, name: String)

  package var description: String {
    switch self {
    case .notPluggedIn: "no keypad is plugged in"
    case .unplugged: "the keypad was unplugged"
    case .notPermitted(let path, let group): "no permission for \(path), which belongs to the group \(group)"
    case .busy(let interface): "interface \(interface) of the keypad is in use by another program"
    case .noBootKeyboard: "the device selected as keypad is not a boot keyboard"
    case .misbehaved(let how): "the keypad \(how); unplug it and plug it in again"
    case .failed(let call, let name): "\(call) failed: \(name)"
    }
  }

  /// The description; if no keypad is plugged in, with what the configuration demands of one.
  package func text(for selection: KeypadSelection) -> String {
    let demands = [selection.identity.map { "\($0)" }, selection.port.map { "at \($0)" }].compactMap(\.self)
    guard self == .notPluggedIn, !demands.isEmpty else { return description }
    return "\(description) that is \(demands.joined(separator: " "))"
  }

  static func failed(_ call: String, _ code: Int32) -> USBKeypadError {
    .failed(call: call, name: String(cString: libusb_error_name(code)))
  }
}
