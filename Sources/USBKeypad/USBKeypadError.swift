import CUSB

/// Why there is no keypad to type on, in words that say what to do about it. Never has anything of what was typed.
public enum USBKeypadError: Error, Equatable, Sendable, CustomStringConvertible {
  /// None that is meant is plugged in.
  case notPluggedIn
  case unplugged
  /// The device node may not be opened; `group` is the group that owns it.
  case notPermitted(path: String, group: String)
  /// Another program has claimed one of the keypad's interfaces.
  case busy(interface: Int)
  /// Nothing on it speaks the boot protocol of HID 1.11, appendix B.
  case noBootKeyboard
  /// It sent what no boot keyboard sends, and is not listened to again before it is plugged in anew.
  case misbehaved(String)
  /// A call of libusb's failed; `name` is its own name for why.
  case failed(call: String, name: String)

  public var description: String {
    switch self {
    case .notPluggedIn: "no keypad is plugged in"
    case .unplugged: "the keypad was unplugged"
    case .notPermitted(let path, let group): "no permission for \(path), which belongs to the group \(group)"
    case .busy(let interface): "interface \(interface) of the keypad is in use by another program"
    case .noBootKeyboard: "the device that is meant to be the keypad is no boot keyboard"
    case .misbehaved(let how): "the keypad \(how); plug it in anew"
    case .failed(let call, let name): "\(call) failed: \(name)"
    }
  }

  static func failed(_ call: String, _ code: Int32) -> USBKeypadError {
    .failed(call: call, name: String(cString: libusb_error_name(code)))
  }
}
