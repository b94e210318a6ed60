import GPIO
import Glibc
import USBKeypad

// What to do about hardware that cannot be used: the other half of what its errors say.

extension GPIOError {
  var remedy: String {
    switch self {
    case .notYetOpened: "try again"
    case .noChip(_, let present) where present.isEmpty:
      "load the chip's driver; /dev/gpiochip* must be there, also inside a container"
    case .noChip: "`approval-token board probe` lists the chips: put the label of yours into gpio.chips"
    case .severalChips: "take all but one away, or name another label in gpio.chips"
    case .noLine: "`approval-token board probe` lists the lines: mend the number"
    case .otherName: "look at the wiring and mend the number, or mend the name if the kernel calls it so now"
    case .busy(_, _, let consumer) where consumer.hasPrefix("approval-token"):
      "stop the service first: systemctl stop approval-token"
    case .busy: "end the program that has it, or remove the overlay or driver of that name"
    case .notPermitted(_, let group): "join the group \(group), or install the rules in udev/ and the service's group"
    case .gone: "look at the plug and at what dmesg says of the chip"
    case .edgesLost: "look for a loose contact"
    case .failed(_, EINVAL), .failed(_, EOPNOTSUPP), .failed(_, ENOTSUP):
      "if the chip cannot pull a line, say bias = \"as-is\" and wire a resistor"
    case .failed: "look at what dmesg says of the chip"
    }
  }
}

extension USBKeypadError {
  var remedy: String {
    switch self {
    case .notPluggedIn, .unplugged:
      "plug it in; `approval-token board probe` lists what can be a keypad, for keypad.device and keypad.port"
    case .notPermitted(_, let group): "join the group \(group), or install the rules in udev/ and the service's group"
    case .busy: "stop the service first, or end the program that has it"
    case .noBootKeyboard: "take one that speaks the boot protocol, or mend keypad.device"
    case .misbehaved: "take another keypad if it does that again"
    case .failed: "plug it in anew, and look at what dmesg says of it"
    }
  }
}
