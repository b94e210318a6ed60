// SPDX-License-Identifier: Apache-2.0
import CUSB
import HIDReports
import Secrets

@testable import USBKeypad

/// Data of a USB device: its descriptors as libusb delivers them, and the reports of a keyboard.
func readHID(_ bytes: [UInt8]) {
  var input = Input(bytes, choices: 3)
  switch input.choice {
  case 0: readReports(input.bytes)
  case 1: Descriptors(from: &input).read()
  default: _ = KeypadSelection.Identity(input.text)
  }
}

private func readReports(_ bytes: [UInt8]) {
  var decoder = BootKeyboardDecoder()
  let sink = DigitCount()
  var rest = bytes[...]
  while let length = rest.popFirst() {
    // Mostly the length of a report, sometimes another.
    let report = Array(rest.prefix(length < 240 ? BootKeyboardDecoder.reportBytes : Int(length) - 236))
    rest = rest.dropFirst(report.count)
    report.withUnsafeBytes { report in try? decoder.decode(report, into: sink) }
  }
}

private final class DigitCount: KeySink {
  func press(_ key: KeyPress) {
    guard case .digit(let digit) = key else { return }
    require(digit.withExposedSecret { (0x30...0x39).contains($0) }, "a digit is one")
  }
  func keypadIsUnavailable(_ why: String) {}
  func keypadIsAvailable() {}
}

/// A configuration descriptor with the contents of the input. As in libusb, an array with elements is not null, and an
/// interface may have no setting.
private struct Descriptors {
  private var endpoints: [[libusb_endpoint_descriptor]] = []
  private var settings: [libusb_interface_descriptor?] = []

  init(from input: inout Input) {
    for _ in 0..<Int(input.byte() & 0x0F) {
      guard input.byte() & 0x0F > 0 else {
        settings.append(nil)
        endpoints.append([])
        continue
      }
      var setting = libusb_interface_descriptor()
      setting.bInterfaceNumber = input.byte()
      setting.bInterfaceClass = input.byte()
      setting.bInterfaceSubClass = input.byte()
      setting.bInterfaceProtocol = input.byte()
      setting.bNumEndpoints = input.byte() & 0x0F
      endpoints.append(
        (0..<Int(setting.bNumEndpoints)).map { _ in
          var endpoint = libusb_endpoint_descriptor()
          endpoint.bEndpointAddress = input.byte()
          endpoint.bmAttributes = input.byte()
          endpoint.wMaxPacketSize = UInt16(input.byte()) << 8 | UInt16(input.byte())
          return endpoint
        })
      settings.append(setting)
    }
  }

  func read() {
    let endpoints = endpoints.map { list in
      let copy = UnsafeMutableBufferPointer<libusb_endpoint_descriptor>.allocate(capacity: list.count)
      _ = copy.initialize(from: list)
      return copy
    }
    defer { for list in endpoints { list.deallocate() } }
    let alternates = UnsafeMutableBufferPointer<libusb_interface_descriptor>.allocate(capacity: settings.count)
    defer { alternates.deallocate() }
    let interfaces = UnsafeMutableBufferPointer<libusb_interface>.allocate(capacity: settings.count)
    defer { interfaces.deallocate() }
    for (index, setting) in settings.enumerated() {
      var interface = libusb_interface()
      if var setting {
        setting.endpoint = endpoints[index].isEmpty ? nil : UnsafePointer(endpoints[index].baseAddress)
        alternates.initializeElement(at: index, to: setting)
        interface.altsetting = alternates.baseAddress.map { UnsafePointer($0 + index) }
        interface.num_altsetting = 1
      }
      interfaces.initializeElement(at: index, to: interface)
    }
    var configuration = libusb_config_descriptor()
    configuration.bNumInterfaces = UInt8(settings.count)
    configuration.interface = settings.isEmpty ? nil : UnsafePointer(interfaces.baseAddress)
    let (all, boot) = KeypadDescription.interfaces(of: configuration)
    require(all.count <= settings.count && (boot == nil || !all.isEmpty), "no more interfaces than there are")
    require(!KeypadDescription.isSecurityKey(configuration) || !all.isEmpty, "a security key has an HID interface")
  }
}
