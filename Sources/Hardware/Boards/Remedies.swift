// SPDX-License-Identifier: Apache-2.0
import GPIO
import Glibc
import USBKeypad

// Remedies for hardware faults. They follow the text of the error.

extension GPIOError {
  var remedy: String {
    switch self {
    case .notYetOpened: "try again"
    case .noChip(_, let present, _) where present.isEmpty:
      "load the chip's driver; /dev/gpiochip* must exist, also inside a container"
    case .noChip: "`approval-token board probe` lists the chips: set gpio.chips to the label of yours"
    case .severalChips: "unplug all but one, or set another label in gpio.chips"
    case .noLine: "`approval-token board probe` lists the lines: correct the number"
    case .otherName: "check the wiring and correct the number, or correct the name if the kernel has changed it"
    case .busy(_, _, let consumer) where consumer.hasPrefix("approval-token"):
      "stop the service first: systemctl stop approval-token"
    case .busy: "stop the program that uses it, or remove the overlay or driver of that name"
    case .notPermitted(_, "root"): "install the rules in udev/ and the service's group: udev/README.md"
    case .notPermitted(_, let group): "join the group \(group), or install the rules in udev/ and the service's group"
    case .gone: "check the plug and the messages of dmesg about the chip"
    case .edgesLost: "check for a loose contact"
    case .failed(_, EINVAL), .failed(_, EOPNOTSUPP), .failed(_, ENOTSUP):
      "if the chip has no pull resistors, set bias = \"as-is\" and add a resistor"
    case .failed: "see the messages of dmesg about the chip"
    }
  }
}

extension USBKeypadError {
  var remedy: String {
    switch self {
    case .notPluggedIn, .unplugged:
      "plug it in; `approval-token board probe` lists possible keypads for keypad.device and keypad.port"
    case .notPermitted(_, "root"): "add a udev rule for this keypad: udev/README.md"
    case .notPermitted(_, let group): "join the group \(group), or install the rules in udev/ and the service's group"
    case .busy: "stop the service first, or the program that uses it"
    case .noBootKeyboard: "use a keypad with the boot protocol, or correct keypad.device"
    case .misbehaved: "use another keypad if this happens again"
    case .failed: "unplug it, plug it in again, and see the messages of dmesg about it"
    }
  }
}
