// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import Testing
import USBKeypad

@Suite("A keypad on the bench", .serialized, .enabled(if: isBenchKernel, elsewhere), .timeLimit(.minutes(2)))
final class KeypadOnTheBench {
  private let recorder = Recorder()

  deinit { for socket in 0...1 { _ = system("panel unplug \(socket) 2>/dev/null") } }

  @Test("Detaches the keypad from the kernel, and keys reach only its sink")
  func detachesTheKeypadFromTheKernelAndKeysReachOnlyItsSink() async throws {
    try Plug.panel("plug")
    // The kernel's driver is attached first, as on a board without the quirk.
    #expect(try await inputDevicesAppear())
    let keypad = try USBKeypad(into: recorder)
    #expect(await recorder.untilAvailable() == ["no keypad is plugged in"])
    #expect(try inputDevices() == [])
    let plug = try Plug()
    try plug.type([0x59, 0x5A, 0x62, 0x1E, 0x27, 0x53, 0x2A, 0x29, 0x55, 0xB0, 0x58])
    #expect(await recorder.next(11) == "12010dec00e")
    #expect(keypad.trouble == nil)
    keypad.close()
    #expect(try inputDevices() == [])
  }

  /// Fails if a transfer of the start takes the signal that ends the thread.
  @Test("Ends at any moment of its start", arguments: [true, false]) func endsAtAnyMoment(hearsUdev: Bool) throws {
    try Plug.panel("plug")
    for milliseconds in 0..<40 {
      let keypad = try USBKeypad(hearsUdev: hearsUdev, into: recorder)
      usleep(UInt32(milliseconds) * 1000)
      let start = ContinuousClock.now
      keypad.close()
      #expect(ContinuousClock.now - start < .seconds(10), "after \(milliseconds) ms")
    }
  }

  @Test("Gives the keypad back at the end if configured") func givesTheKeypadBackAtTheEndIfConfigured() async throws {
    try Plug.panel("plug")
    #expect(try await inputDevicesAppear())
    let keypad = try USBKeypad(givesBack: true, into: recorder)
    _ = await recorder.untilAvailable()
    #expect(try inputDevices() == [])
    keypad.close()
    #expect(try await inputDevicesAppear())
  }

  @Test("Recovers when a keypad is unplugged during typing and plugged in again")
  func recoversWhenAKeypadIsUnpluggedDuringTypingAndPluggedInAgain() async throws {
    let keypad = try USBKeypad(into: recorder)
    #expect(await recorder.next() == .unavailable("no keypad is plugged in"))
    for _ in 0..<3 {
      try Plug.panel("plug")
      #expect(await recorder.next() == .available)
      let plug = try Plug()
      try plug.send([0, 0, 0x59, 0, 0, 0, 0, 0])
      #expect(await recorder.next(1) == "1")
      close(plug.file)
      try Plug.panel("unplug")
      #expect(await recorder.untilUnplugged())
    }
    keypad.close()
  }

  @Test("Takes every interface of a composite keypad") func takesEveryInterfaceOfACompositeKeypad() async throws {
    try Plug.panel("plug composite")
    #expect(try await inputDevicesAppear())
    let keypad = try USBKeypad(into: recorder)
    _ = await recorder.untilAvailable()
    #expect(try inputDevices() == [])
    try Plug().type([0x61])
    #expect(await recorder.next(1) == "9")
    keypad.close()
  }

  @Test("Keeps a second keypad off the console, and uses it when the first one is unplugged")
  func keepsASecondKeypadOffTheConsoleAndUsesItWhenTheFirstOneIsUnplugged() async throws {
    try Plug.panel("plug keypad 0")
    let keypad = try USBKeypad(into: recorder)
    _ = await recorder.untilAvailable()
    try Plug.panel("plug keypad 1")
    // Wait until the bus has detected both and they are claimed.
    _ = try await eventually("both keypads claimed") { try claimedInterfaces() == 2 ? true : nil }
    #expect(try inputDevices() == [])
    try Plug.panel("unplug 0")
    #expect(await recorder.untilUnplugged())
    #expect(await recorder.next() == .available)
    try Plug("/dev/hidg1").type([0x5B])
    #expect(await recorder.next(1) == "3")
    keypad.close()
  }

  /// Fails if only the removal of the first one helps.
  @Test("Uses a second keypad when the first one misbehaves") func usesASecondKeypadWhenTheFirstOneMisbehaves()
    async throws
  {
    try Plug.panel("plug keypad 0")
    let keypad = try USBKeypad(into: recorder)
    _ = await recorder.untilAvailable()
    try Plug.panel("plug keypad 1")
    _ = try await eventually("both keypads claimed") { try claimedInterfaces() == 2 ? true : nil }
    try Plug("/dev/hidg0").send([0, 0, 0x59])
    #expect(await recorder.untilAvailable().last?.contains("report of 3 bytes") == true)
    try Plug("/dev/hidg1").type([0x5B])
    #expect(await recorder.next(1) == "3")
    #expect(keypad.trouble == nil)
    keypad.close()
  }

  @Test("Does not claim other devices") func doesNotClaimOtherDevices() async throws {
    try Plug.panel("plug keypad 0")
    let other = KeypadSelection(identity: .init(vendor: 0x1D6B, product: 0x0105))
    let keypad = try USBKeypad(other, into: recorder)
    #expect(await recorder.next() == .unavailable("no keypad is plugged in that is 1d6b:0105"))
    #expect(try await inputDevicesAppear())
    try Plug.panel("plug keypad 1")
    #expect(await recorder.next() == .available)
    #expect(try inputDevices().count == 1)
    keypad.close()
    let found = try describeKeypads()
    #expect(found.map(\.identity.product).sorted() == [0x0104, 0x0105])
    let pinned = found.first { $0.identity.product == 0x0104 }!.port
    let atPort = try USBKeypad(KeypadSelection(port: pinned), into: recorder)
    #expect(await recorder.untilAvailable() == ["no keypad is plugged in that is at \(pinned)"])
    try Plug("/dev/hidg0").type([0x5C])
    #expect(await recorder.next(1) == "4")
    atPort.close()
  }

  @Test("Reports that another program has claimed it") func reportsThatAnotherProgramHasClaimedIt() async throws {
    try Plug.panel("plug")
    let first = try USBKeypad(into: recorder)
    _ = await recorder.untilAvailable()
    let other = Recorder()
    let second = try USBKeypad(into: other)
    #expect(await other.next() == .unavailable("no keypad is plugged in"))
    #expect(await other.next() == .unavailable("interface 0 of the keypad is in use by another program"))
    #expect(second.trouble == .busy(interface: 0))
    #expect(first.trouble == nil)
    second.close()
    first.close()
  }

  @Test("Loses and invents nothing when reports come as fast as they can")
  func losesAndInventsNothingWhenReportsComeAsFastAsTheyCan() async throws {
    try Plug.panel("plug")
    let keypad = try USBKeypad(into: recorder)
    _ = await recorder.untilAvailable()
    let plug = try Plug()
    let usages = (0..<500).map { UInt8(0x59 + $0 % 10) }
    let sender = Thread { try? plug.type(usages) }
    #expect(await recorder.next(500) == String(repeating: "1234567890", count: 50))
    sender.join("the typing")
    keypad.close()
  }

  @Test("A rollover report is ignored") func aRolloverReportIsIgnored() async throws {
    try Plug.panel("plug")
    let keypad = try USBKeypad(into: recorder)
    _ = await recorder.untilAvailable()
    let plug = try Plug()
    try plug.send([0, 0, 0x59, 0, 0, 0, 0, 0])
    for _ in 0..<200 { try plug.send([0, 0, 1, 1, 1, 1, 1, 1]) }
    try plug.send([0, 0, 0x59, 0x5A, 0, 0, 0, 0])
    #expect(await recorder.next(2) == "12")
    keypad.close()
  }

  @Test("Stops after invalid reports, and reports that") func stopsAfterInvalidReportsAndReportsThat() async throws {
    try Plug.panel("plug wide")
    let keypad = try USBKeypad(into: recorder)
    _ = await recorder.untilAvailable()
    try Plug().send([UInt8](repeating: 0x59, count: 64))
    #expect(
      await recorder.next() == .unavailable("the keypad sent a report of 64 bytes; unplug it and plug it in again"))
    #expect(try inputDevices() == [])
    try Plug.panel("unplug")
    #expect(await recorder.untilUnplugged())
    try Plug.panel("plug")
    #expect(await recorder.next() == .available)
    keypad.close()
  }

  @Test("Ignores the report descriptor, valid or not") func ignoresTheReportDescriptorValidOrNot() async throws {
    try Plug.panel("plug nonsense")
    let keypad = try USBKeypad(into: recorder)
    _ = await recorder.untilAvailable()
    try Plug().type([0x60])
    #expect(await recorder.next(1) == "8")
    keypad.close()
  }

  @Test("Sleeps while no key is pressed") func sleepsWhileNoKeyIsPressed() async throws {
    try Plug.panel("plug")
    let keypad = try USBKeypad(into: recorder)
    _ = await recorder.untilAvailable()
    try await Task.sleep(for: .seconds(2))
    let before = try sleeps(ofThreadsCalled: "keypad")
    #expect(before > 0)
    try await Task.sleep(for: .seconds(20))
    #expect(try sleeps(ofThreadsCalled: "keypad") - before <= 1)
    keypad.close()
  }
}
