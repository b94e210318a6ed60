// SPDX-License-Identifier: Apache-2.0
import CUSB
import Testing

@testable import USBKeypad

@Suite("Reading what a device says it is", .timeLimit(.minutes(5))) struct KeypadSelectionTests {
  /// Traps if the count is used without the array.
  @Test("Descriptors with counts of missing interfaces and endpoints are not a keypad")
  func countsWithoutLists() {
    var configuration = libusb_config_descriptor()
    configuration.bNumInterfaces = 255
    #expect(KeypadDescription.interfaces(of: configuration).0.isEmpty)
    #expect(!KeypadDescription.isSecurityKey(configuration))
    var setting = libusb_interface_descriptor()
    setting.bInterfaceClass = 3
    setting.bInterfaceSubClass = 1
    setting.bInterfaceProtocol = 1
    setting.bNumEndpoints = 255
    withUnsafePointer(to: setting) { setting in
      var interface = libusb_interface()
      interface.num_altsetting = 1
      interface.altsetting = setting
      withUnsafePointer(to: interface) { interface in
        configuration.interface = interface
        configuration.bNumInterfaces = 1
        let (hid, boot) = KeypadDescription.interfaces(of: configuration)
        #expect(hid == [0] && boot == nil && !KeypadDescription.isSecurityKey(configuration))
      }
    }
  }

  struct Interface {
    var number: UInt8 = 0
    var kind: [UInt8] = [3, 1, 1]
    var settings = 1
    /// Address, attributes, maximum packet size.
    var endpoints: [(UInt8, UInt8, UInt16)] = [(0x81, 3, 8)]
  }

  struct Case: CustomTestStringConvertible {
    let testDescription: String
    let interfaces: [Interface]
    let hid: [UInt8]
    let boot: KeypadDescription.BootInterface?
  }

  static func boot(_ number: UInt8 = 0, _ endpoint: UInt8 = 0x81, _ bytes: Int = 8) -> KeypadDescription.BootInterface {
    KeypadDescription.BootInterface(number: number, endpoint: endpoint, packetBytes: bytes)
  }

  static let cases = [
    Case(testDescription: "a keypad", interfaces: [Interface()], hid: [0], boot: boot()),
    Case(
      testDescription: "media keys beside it are claimed too",
      interfaces: [Interface(), Interface(number: 1, kind: [3, 0, 0], endpoints: [(0x82, 3, 4)])],
      hid: [0, 1], boot: boot()),
    Case(
      testDescription: "the keys may be on the second interface",
      interfaces: [Interface(kind: [3, 1, 2]), Interface(number: 1, endpoints: [(0x01, 3, 8), (0x83, 3, 64)])],
      hid: [0, 1], boot: boot(1, 0x83, 64)),
    Case(
      testDescription: "what is not HID is left alone",
      interfaces: [Interface(kind: [8, 6, 80]), Interface(number: 1)], hid: [1], boot: boot(1)),
    Case(testDescription: "a mouse", interfaces: [Interface(kind: [3, 1, 2])], hid: [0], boot: nil),
    Case(testDescription: "no endpoint", interfaces: [Interface(endpoints: [])], hid: [0], boot: nil),
    Case(
      testDescription: "an endpoint the other way", interfaces: [Interface(endpoints: [(1, 3, 8)])], hid: [0], boot: nil
    ),
    Case(testDescription: "a bulk endpoint", interfaces: [Interface(endpoints: [(0x81, 2, 8)])], hid: [0], boot: nil),
    Case(
      testDescription: "packets too small for a report", interfaces: [Interface(endpoints: [(0x81, 3, 7)])], hid: [0],
      boot: nil),
    Case(
      testDescription: "several packets at once", interfaces: [Interface(endpoints: [(0x81, 3, 0x1400)])], hid: [0],
      boot: nil),
    Case(testDescription: "no setting at all", interfaces: [Interface(settings: 0)], hid: [], boot: nil),
    Case(testDescription: "no interface at all", interfaces: [], hid: [], boot: nil),
  ]

  @Test("Finds the keys and everything beside them", arguments: cases) func findsTheKeysAndEverythingBesideThem(
    _ table: Case
  ) {
    let found = withConfiguration(table.interfaces) { KeypadDescription.interfaces(of: $0) }
    #expect(found.0 == table.hid)
    #expect(found.1 == table.boot)
  }

  /// What a key with a keyboard for one-time passwords has, and a keyboard with keys for media and lights.
  @Test("A security key is no keypad, unless its numbers are configured") func securityKeys() {
    let keys = Interface(number: 0, endpoints: [(0x81, 3, 8)])
    let fido = Interface(number: 1, kind: [3, 0, 0], endpoints: [(0x04, 3, 64), (0x84, 3, 64)])
    let media = Interface(number: 1, kind: [3, 0, 0], endpoints: [(0x82, 3, 64)])
    let lights = Interface(number: 2, kind: [3, 0, 0], endpoints: [(0x03, 3, 32), (0x83, 3, 32)])
    for (interfaces, isKey) in [
      ([keys, fido], true), ([fido], true), ([keys, media, lights], false), ([keys], false),
    ] {
      #expect(withConfiguration(interfaces) { KeypadDescription.isSecurityKey($0) } == isKey)
    }
    var device = KeypadDescription(
      identity: .init(vendor: 0x1050, product: 0x0407), port: "1-1.2", path: "/dev/bus/usb/001/002",
      hidInterfaces: [0, 1], bootInterface: Self.boot())
    #expect(KeypadSelection().matches(device))
    device.isSecurityKey = true
    #expect(!KeypadSelection().matches(device) && !KeypadSelection(port: "1-1.2").matches(device))
    #expect(KeypadSelection(identity: .init(vendor: 0x1050, product: 0x0407)).matches(device))
  }

  @Test(
    "Selects a device by its numbers, its port, both or neither",
    arguments: [
      // Any keyboard is accepted.
      (KeypadSelection(), true, true), (KeypadSelection(), false, false),
      (KeypadSelection(identity: .init(vendor: 0x1D6B, product: 0x0104)), true, true),
      // Selected by its numbers although it is not a keyboard; this must be reported.
      (KeypadSelection(identity: .init(vendor: 0x1D6B, product: 0x0104)), false, true),
      (KeypadSelection(identity: .init(vendor: 0x1D6B, product: 0x0105)), true, false),
      (KeypadSelection(identity: .init(vendor: 0x1D6C, product: 0x0104)), true, false),
      (KeypadSelection(port: "1-1.2"), true, true), (KeypadSelection(port: "1-1"), true, false),
      (KeypadSelection(identity: .init(vendor: 0x1D6B, product: 0x0104), port: "2-1.2"), true, false),
    ])
  func selectsADeviceByItsNumbersItsPortBothOrNeither(
    _ selection: KeypadSelection, _ isKeyboard: Bool, _ isMeant: Bool
  ) {
    let device = KeypadDescription(
      identity: .init(vendor: 0x1D6B, product: 0x0104), port: "1-1.2", path: "/dev/bus/usb/001/002",
      hidInterfaces: [0], bootInterface: isKeyboard ? Self.boot() : nil)
    #expect(selection.matches(device) == isMeant)
  }

  /// The memory layout of libusb.
  private func withConfiguration<Result>(
    _ interfaces: [Interface], _ body: (libusb_config_descriptor) -> Result
  ) -> Result {
    var endpoints: [UnsafeMutablePointer<libusb_endpoint_descriptor>] = []
    var settings: [UnsafeMutablePointer<libusb_interface_descriptor>] = []
    let list = UnsafeMutablePointer<libusb_interface>.allocate(capacity: interfaces.count)
    defer {
      endpoints.forEach { $0.deallocate() }
      settings.forEach { $0.deallocate() }
      list.deallocate()
    }
    for (index, interface) in interfaces.enumerated() {
      let ends = UnsafeMutablePointer<libusb_endpoint_descriptor>.allocate(capacity: interface.endpoints.count)
      endpoints.append(ends)
      for (number, (address, attributes, packet)) in interface.endpoints.enumerated() {
        var end = libusb_endpoint_descriptor()
        (end.bEndpointAddress, end.bmAttributes, end.wMaxPacketSize) = (address, attributes, packet)
        (ends + number).initialize(to: end)
      }
      let setting = UnsafeMutablePointer<libusb_interface_descriptor>.allocate(capacity: 1)
      settings.append(setting)
      setting.initialize(to: libusb_interface_descriptor())
      setting.pointee.bInterfaceNumber = interface.number
      setting.pointee.bInterfaceClass = interface.kind[0]
      setting.pointee.bInterfaceSubClass = interface.kind[1]
      setting.pointee.bInterfaceProtocol = interface.kind[2]
      setting.pointee.bNumEndpoints = UInt8(interface.endpoints.count)
      setting.pointee.endpoint = UnsafePointer(ends)
      (list + index).initialize(
        to: libusb_interface(
          altsetting: interface.settings == 0 ? nil : UnsafePointer(setting), num_altsetting: Int32(interface.settings))
      )
    }
    var configuration = libusb_config_descriptor()
    configuration.bNumInterfaces = UInt8(interfaces.count)
    configuration.interface = UnsafePointer(list)
    return body(configuration)
  }

  @Test(
    "A port is a bus and the ports from its root",
    arguments: [
      ("1-1", true), ("1-1.2", true), ("12-1.2.3.4.5.6.7", true), ("", false), ("1", false), ("1-", false),
      ("-1", false), ("usb1", false), ("1-1.", false), ("1-1:1.0", false), ("01-1", false), ("1-0", false),
      ("1-1-1", false), ("1-+1", false), ("1-256", false), ("1-1.2.3.4.5.6.7.8", false), ("1-1\n", false),
    ])
  func ports(text: String, isPort: Bool) { #expect(KeypadSelection.isPort(text) == isPort) }

  @Test("A missing keypad is named as it is configured") func missing() {
    let identity = KeypadSelection.Identity(vendor: 0x1A2C, product: 0x0E24)
    func text(_ selection: KeypadSelection) -> String { USBKeypadError.notPluggedIn.text(for: selection) }
    #expect(text(KeypadSelection()) == "no keypad is plugged in")
    #expect(text(KeypadSelection(identity: identity)) == "no keypad is plugged in that is 1a2c:0e24")
    #expect(text(KeypadSelection(port: "1-1.2")) == "no keypad is plugged in that is at 1-1.2")
    let both = KeypadSelection(identity: identity, port: "1-1.2")
    #expect(text(both) == "no keypad is plugged in that is 1a2c:0e24 at 1-1.2")
    #expect(USBKeypadError.unplugged.text(for: both) == "the keypad was unplugged")
  }
}
