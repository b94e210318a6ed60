// SPDX-License-Identifier: Apache-2.0
import CUSB

/// A USB device with an HID interface. Read from its descriptors, which are untrusted.
package struct KeypadDescription: Sendable, Equatable {
  package let identity: KeypadSelection.Identity
  package let port: String
  /// The device node, for example "/dev/bus/usb/001/004".
  package let path: String
  /// The numbers of all HID interfaces. All of them are claimed; otherwise the kernel would deliver their keys to the
  /// console.
  package let hidInterfaces: [UInt8]
  let bootInterface: BootInterface?
  /// Whether it has the interface of a security key. Many of them are keyboards, too, which type one-time passwords.
  package internal(set) var isSecurityKey = false

  package var isBootKeyboard: Bool { bootInterface != nil }
  /// Whether it is a keypad unless the configuration has its numbers.
  package var isKeypad: Bool { isBootKeyboard && !isSecurityKey }

  /// The interface with the boot protocol of a keyboard: class 3, subclass 1, protocol 1 (HID 1.11, section 4).
  struct BootInterface: Sendable, Equatable {
    let number: UInt8
    let endpoint: UInt8
    let packetBytes: Int
  }
}

extension KeypadDescription {
  /// Nil if the device's descriptors cannot be read.
  init?(_ device: OpaquePointer) {
    var descriptor = libusb_device_descriptor()
    guard libusb_get_device_descriptor(device, &descriptor) == 0 else { return nil }
    identity = KeypadSelection.Identity(vendor: descriptor.idVendor, product: descriptor.idProduct)
    let bus = libusb_get_bus_number(device)
    // USB allows seven tiers.
    var ports = [UInt8](repeating: 0, count: 7)
    let depth = max(0, Int(libusb_get_port_numbers(device, &ports, Int32(ports.count))))
    port = "\(bus)-" + ports[..<depth].map(String.init).joined(separator: ".")
    path = "/dev/bus/usb/\(padded(bus))/\(padded(libusb_get_device_address(device)))"

    var configuration: UnsafeMutablePointer<libusb_config_descriptor>?
    guard libusb_get_active_config_descriptor(device, &configuration) == 0, let configuration else { return nil }
    defer { libusb_free_config_descriptor(configuration) }
    (hidInterfaces, bootInterface) = Self.interfaces(of: configuration.pointee)
    isSecurityKey = Self.isSecurityKey(configuration.pointee)
  }

  /// Whether there is an HID interface without a subclass that has interrupt endpoints of 64 bytes both ways, as
  /// security keys have for CTAP over USB. Programmable keypads can have one, too. The report descriptor would tell,
  /// but it can be read only where the interface is claimed.
  static func isSecurityKey(_ configuration: libusb_config_descriptor) -> Bool {
    list(configuration.interface, configuration.bNumInterfaces).contains { interface in
      guard interface.num_altsetting > 0, let setting = interface.altsetting?.pointee,
        setting.bInterfaceClass == UInt8(LIBUSB_CLASS_HID.rawValue), setting.bInterfaceSubClass == 0
      else { return false }
      let ways = list(setting.endpoint, setting.bNumEndpoints)
        .filter { $0.bmAttributes & 3 == 3 && $0.wMaxPacketSize == 64 }.map { $0.bEndpointAddress & 0x80 }
      return Set(ways).count == 2
    }
  }

  static func interfaces(of configuration: libusb_config_descriptor) -> ([UInt8], BootInterface?) {
    var all: [UInt8] = []
    var boot: BootInterface?
    for interface in list(configuration.interface, configuration.bNumInterfaces) {
      // The first alternate setting is active by default, and this program selects no other.
      guard interface.num_altsetting > 0, let setting = interface.altsetting?.pointee,
        setting.bInterfaceClass == UInt8(LIBUSB_CLASS_HID.rawValue)
      else { continue }
      all.append(setting.bInterfaceNumber)
      guard boot == nil, setting.bInterfaceSubClass == 1, setting.bInterfaceProtocol == 1 else { continue }
      for endpoint in list(setting.endpoint, setting.bNumEndpoints)
      where endpoint.bmAttributes & 3 == 3 && endpoint.bEndpointAddress & 0x80 != 0 {
        // Bits 11 and 12 give further packets per microframe (USB 2.0, 9.6.6). Keyboards have none.
        let bytes = Int(endpoint.wMaxPacketSize)
        guard (8...1024).contains(bytes) else { break }
        boot = BootInterface(
          number: setting.bInterfaceNumber, endpoint: endpoint.bEndpointAddress, packetBytes: bytes)
        break
      }
    }
    return (all, boot)
  }
}

/// Returns an array of libusb as a buffer.
/// - Parameter start: nil if libusb allocated no array, even if `count` is positive.
private func list<Element>(_ start: UnsafePointer<Element>?, _ count: UInt8) -> UnsafeBufferPointer<Element> {
  UnsafeBufferPointer(start: start, count: start == nil ? 0 : Int(count))
}

private func padded(_ number: UInt8) -> String {
  let digits = String(number)
  return String(repeating: "0", count: 3 - digits.count) + digits
}

/// Describes every boot keyboard on the bus that is no security key without opening it.
package func describeKeypads() throws(USBKeypadError) -> [KeypadDescription] {
  try describeHIDDevices().filter(\.isKeypad)
}

/// Describes every device on the bus with an HID interface, such as keyboards and mice, without opening it.
package func describeHIDDevices() throws(USBKeypadError) -> [KeypadDescription] {
  var context: OpaquePointer?
  let status = libusb_init(&context)
  guard status == 0 else { throw .failed("libusb_init", status) }
  defer { libusb_exit(context) }
  var list: UnsafeMutablePointer<OpaquePointer?>?
  let count = libusb_get_device_list(context, &list)
  guard count >= 0, let list else { throw .failed("libusb_get_device_list", Int32(clamping: count)) }
  defer { libusb_free_device_list(list, 1) }
  return (0..<count).compactMap { list[$0].flatMap(KeypadDescription.init) }.filter { !$0.hidInterfaces.isEmpty }
}
