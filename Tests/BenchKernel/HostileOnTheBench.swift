// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import Testing
import USBKeypad

/// A malicious keyboard, implemented by Tests/BenchKernel/Kernel/hostile-keypad.
private final class HostileKeypad {
  private static let log = "/run/bench-kernel/hostile-keypad.log"

  init(_ kinds: String...) throws {
    let line = "hostile-keypad \(kinds.joined(separator: " "))"
    guard system("\(line) >\(Self.log) 2>&1 </dev/null & echo $! >\(Self.log).process") == 0 else {
      throw BenchError(what: line)
    }
  }

  func said(_ line: String) async throws {
    _ = try await eventually("\"\(line)\" from the hostile keypad") {
      guard let log = try? contents(Self.log) else { return nil as Bool? }
      if log.contains("Traceback") { throw BenchError(what: log) }
      return log.split(separator: "\n").contains(line[...]) ? true : nil
    }
  }

  func pullOut() { _ = system("kill -KILL $(cat \(Self.log).process) 2>/dev/null") }

  deinit { pullOut() }
}

@Suite("A hostile keypad on the bench", .serialized, .enabled(if: isBenchKernel, elsewhere), .timeLimit(.minutes(5)))
final class HostileOnTheBench {
  private let recorder = Recorder()
  private let keypad: USBKeypad

  init() throws { keypad = try USBKeypad(into: recorder) }

  deinit { keypad.close() }

  @Test("Loses and invents no key at a report every millisecond") func losesAndInventsNoKeyAtAReportEveryMillisecond()
    async throws
  {
    let hostile = try HostileKeypad("kilohertz")
    _ = await recorder.untilAvailable()
    #expect(await recorder.next(1500) == String(repeating: "1234567890", count: 150))
    try await hostile.said("sent 3000")
    #expect(try inputDevices() == [])
  }

  @Test("Reads each key once during a flood of rollover reports") func readsEachKeyOnceDuringAFloodOfRolloverReports()
    async throws
  {
    let hostile = try HostileKeypad("rollover")
    _ = await recorder.untilAvailable()
    #expect(await recorder.next(10) == "1234567890")
    try await hostile.said("sent 1530")
  }

  @Test("Ignores empty packets") func ignoresEmptyPackets() async throws {
    let hostile = try HostileKeypad("empty")
    _ = await recorder.untilAvailable()
    #expect(await recorder.next(3) == "123")
    hostile.pullOut()
    #expect(await recorder.untilUnplugged())
  }

  @Test("Rejects a report that is too short") func rejectsAReportThatIsTooShort() async throws {
    let hostile = try HostileKeypad("short")
    _ = await recorder.untilAvailable()
    #expect(
      await recorder.next() == .unavailable("the keypad sent a report of 3 bytes; unplug it and plug it in again"))
    #expect(keypad.trouble == .misbehaved("sent a report of 3 bytes"))
    hostile.pullOut()
    #expect(await recorder.untilUnplugged())
  }

  @Test("Rejects a packet longer than the endpoint's packet size") func rejectsAPacketLongerThanTheEndpointsPacketSize()
    async throws
  {
    let hostile = try HostileKeypad("babble")
    _ = await recorder.untilAvailable()
    #expect(
      await recorder.next() == .unavailable("reading the keypad failed: sent more than it said it would"))
    #expect(await recorder.next() == .available)
    hostile.pullOut()
    #expect(await recorder.untilUnplugged())
  }

  @Test("Continues after a stall, and reports that keys may be lost")
  func continuesAfterAStallAndReportsThatKeysMayBeLost() async throws {
    let hostile = try HostileKeypad("stall")
    _ = await recorder.untilAvailable()
    #expect(await recorder.next(1) == "1")
    #expect(await recorder.next() == .unavailable("reading the keypad failed: stalled"))
    #expect(await recorder.next() == .available)
    #expect(await recorder.next(2) == "23")
    try await hostile.said("sent 6")
  }

  @Test("Does not read a keyboard without the boot protocol, and keeps it off the console")
  func doesNotReadAKeyboardWithoutTheBootProtocolAndKeepsItOffTheConsole() async throws {
    let hostile = try HostileKeypad("no-protocol")
    #expect(await recorder.next() == .unavailable("no keypad is plugged in"))
    #expect(await recorder.next() == .unavailable("SET_PROTOCOL failed: LIBUSB_ERROR_PIPE"))
    #expect(try inputDevices() == [])
    hostile.pullOut()
    #expect(await recorder.next() == .unavailable("no keypad is plugged in"))
  }

  /// While udev is stopped, libusb hears of no change, as in a network namespace of its own.
  @Test("Notices without udev that a keyboard it could not claim is unplugged, and sleeps")
  func noticesWithoutUdevThatAKeyboardItCouldNotClaimIsUnplugged() async throws {
    keypad.close()
    let deafRecorder = Recorder()
    let deaf = try USBKeypad(hearsUdev: false, into: deafRecorder)
    let hostile = try HostileKeypad("no-protocol")
    #expect(await deafRecorder.next() == .unavailable("no keypad is plugged in"))
    #expect(await deafRecorder.next() == .unavailable("SET_PROTOCOL failed: LIBUSB_ERROR_PIPE"))
    #expect(system("udevadm control --stop-exec-queue") == 0)
    defer { _ = system("udevadm control --start-exec-queue") }
    hostile.pullOut()
    _ = try await eventually("the keyboard's removal") { deaf.trouble == .notPluggedIn ? true : nil }
    try await Task.sleep(for: .seconds(3))
    let before = try sleeps(ofThreadsCalled: "keypad")
    #expect(before > 0)
    try await Task.sleep(for: .seconds(10))
    #expect(try sleeps(ofThreadsCalled: "keypad") - before <= 1)
    deaf.close()
  }

  @Test("Lights the NumLock LED") func lightsTheNumLockLED() async throws {
    let hostile = try HostileKeypad("mute")
    _ = await recorder.untilAvailable()
    try await hostile.said("report 01")
  }

  /// The kernel may or may not accept these descriptors. None may stop the service, and none types on the console.
  @Test("Survives descriptors of every wrong length, and takes the next good keypad")
  func survivesDescriptorsOfEveryWrongLengthAndTakesTheNextGoodKeypad() async throws {
    let forgeries = [
      "total-too-long", "total-too-short", "interface-too-long", "interface-too-short", "hid-too-long",
      "hid-report-too-long", "endpoint-too-long", "endpoint-too-short", "length-zero", "endpoints-missing",
      "interfaces-missing", "packets-of-nothing", "packets-too-large", "endpoint-out", "endpoint-bulk",
    ]
    try await HostileKeypad.play(forgeries)
    // Otherwise the last one would be taken for the good keypad.
    _ = try await eventually("the last keypad's removal") { keypad.trouble == nil ? nil : true }
    try Plug.panel("plug")
    defer { _ = system("panel unplug") }
    var events: [Recorder.Event] = []
    // The good keypad may not be the first one that is available.
    _ = try await eventually("the good keypad") { keypad.trouble == nil ? true : nil }
    try Plug().type([0x59, 0x5A, 0x5B])
    while events.filter({ if case .key = $0 { true } else { false } }).count < 3, let event = await recorder.next() {
      events.append(event)
    }
    #expect(events.suffix(4) == [.available, .key("1"), .key("2"), .key("3")], "\(events)")
    #expect(events.dropLast(3).allSatisfy { if case .key = $0 { false } else { true } })
  }
}

extension HostileKeypad {
  /// Plugs in one kind after the other, each for some seconds.
  static func play(_ kinds: [String]) async throws {
    let line = "hostile-keypad \(kinds.joined(separator: " ")) mute & echo $! >\(log).process"
    guard system("(\(line)) >\(log) 2>&1 </dev/null") == 0 else { throw BenchError(what: line) }
    // Also after a failure: the next test needs the bus.
    defer { _ = system("kill -KILL $(cat \(log).process)") }
    // The last one is a keyboard that sends nothing. Wait until it has received a report.
    _ = try await eventually("the last of \(kinds.count) keypads", within: .seconds(180)) { () -> Bool? in
      try contents(log).split(separator: "last\n").dropFirst().contains { $0.contains("report 01") } ? true : nil
    }
  }
}
