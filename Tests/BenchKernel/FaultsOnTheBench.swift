// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import Secrets
import Synchronization
import Testing
import USBKeypad

// Three calls of libusb are interposed in this program: its own functions take the place of those that load the
// library. They can therefore fail in ways that no connected device can cause.

private let submitFaults = Mutex<[Int32]>([])
private let controlFaults = Mutex<[Int32]>([])
private let beforeCancel = Mutex<(@Sendable () -> Void)?>(nil)

private typealias TransferCall = @convention(c) (UnsafeMutableRawPointer) -> Int32

private typealias ControlCall =
  @convention(c) (
    UnsafeMutableRawPointer, UInt8, UInt8, UInt16, UInt16, UnsafeMutablePointer<UInt8>?, UInt16, UInt32
  ) -> Int32

private func real<Call>(_ name: String, _ type: Call.Type = TransferCall.self) -> Call {
  guard let call = dlsym(dlopen("libusb-1.0.so.0", RTLD_NOW), name) else { fatalError("no \(name)") }
  return unsafeBitCast(call, to: type)
}

@_cdecl("libusb_submit_transfer")
func submitTransfer(_ transfer: UnsafeMutableRawPointer) -> Int32 {
  // Control transfers also use this call. In libusb_transfer, the endpoint follows a pointer and a byte of flags.
  let isReading = transfer.load(fromByteOffset: MemoryLayout<UInt>.size + 1, as: UInt8.self) & 0x80 != 0
  let fault = submitFaults.withLock { !isReading || $0.isEmpty ? 0 : $0.removeFirst() }
  return fault != 0 ? fault : real("libusb_submit_transfer")(transfer)
}

@_cdecl("libusb_control_transfer")
func controlTransfer(
  _ device: UnsafeMutableRawPointer, _ kind: UInt8, _ request: UInt8, _ value: UInt16, _ index: UInt16,
  _ data: UnsafeMutablePointer<UInt8>?, _ length: UInt16, _ timeout: UInt32
) -> Int32 {
  let fault = controlFaults.withLock { $0.isEmpty ? 0 : $0.removeFirst() }
  guard fault == 0 else { return fault }
  return real("libusb_control_transfer", ControlCall.self)(
    device, kind, request, value, index, data, length, timeout)
}

@_cdecl("libusb_cancel_transfer")
func cancelTransfer(_ transfer: UnsafeMutableRawPointer) -> Int32 {
  beforeCancel.withLock { $0.take() }?()
  return real("libusb_cancel_transfer")(transfer)
}

@Suite("Faults of libusb on the bench", .serialized, .enabled(if: isBenchKernel, elsewhere), .timeLimit(.minutes(3)))
final class FaultsOnTheBench {
  private static let (inputOutput, noDevice, timeout): (Int32, Int32, Int32) = (-1, -4, -7)
  private let recorder = Recorder()

  init() throws { try Plug.panel("plug") }

  deinit {
    submitFaults.withLock { $0 = [] }
    controlFaults.withLock { $0 = [] }
    _ = system("panel unplug 2>/dev/null")
  }

  private func replug(_ keypad: USBKeypad) async throws {
    try Plug.panel("unplug")
    _ = try await eventually("an empty socket") {
      keypad.trouble == .unplugged || keypad.trouble == .notPluggedIn ? true : nil
    }
    try Plug.panel("plug")
    _ = try await eventually("a keypad that is read") { keypad.trouble == nil ? true : nil }
  }

  private func nextKey() async -> Recorder.Event? {
    while let event = await recorder.next() { if case .key = event { return event } }
    return nil
  }

  @Test("A keypad that cannot be read is reported, and used after it is plugged in again")
  func aKeypadThatCannotBeReadIsReportedAndUsedAfterItIsPluggedInAgain() async throws {
    submitFaults.withLock { $0 = [Self.inputOutput] }
    let keypad = try USBKeypad(into: recorder)
    #expect(await recorder.next() == .unavailable("no keypad is plugged in"))
    #expect(await recorder.next() == .unavailable("libusb_submit_transfer failed: LIBUSB_ERROR_IO"))
    // Its keys do not reach the console in the meantime.
    #expect(try inputDevices() == [])
    try await replug(keypad)
    try Plug().type([0x59])
    #expect(await nextKey() == .key("1"))
    keypad.close()
  }

  @Test("The set-up of a busy keypad is retried") func theSetUpOfABusyKeypadIsRetried() async throws {
    controlFaults.withLock { $0 = [Self.timeout] }
    let keypad = try USBKeypad(into: recorder)
    #expect(await recorder.untilAvailable() == ["no keypad is plugged in"])
    keypad.close()
    controlFaults.withLock { $0 = [Self.timeout, Self.timeout] }
    let again = try USBKeypad(into: recorder)
    #expect(await recorder.next() == .unavailable("no keypad is plugged in"))
    #expect(await recorder.next() == .unavailable("SET_PROTOCOL failed: LIBUSB_ERROR_TIMEOUT"))
    again.close()
  }

  @Test("Reading continues after a failure, and reports that keys may be lost")
  func readingContinuesAfterAFailureAndReportsThatKeysMayBeLost() async throws {
    let keypad = try USBKeypad(into: recorder)
    _ = await recorder.untilAvailable()
    let plug = try Plug()
    submitFaults.withLock { $0 = [Self.inputOutput] }
    try plug.send([0, 0, 0x59, 0, 0, 0, 0, 0])
    #expect(await recorder.next(1) == "1")
    #expect(await recorder.next() == .unavailable("reading the keypad failed: could not be read"))
    #expect(await recorder.next() == .available)
    try plug.send([0, 0, 0, 0, 0, 0, 0, 0])
    try plug.type([0x5A])
    #expect(await recorder.next(1) == "2")
    keypad.close()
  }

  @Test("A keypad that is gone when reading continues is reported as unplugged")
  func aKeypadThatIsGoneWhenReadingContinuesIsReportedAsUnplugged() async throws {
    let keypad = try USBKeypad(into: recorder)
    _ = await recorder.untilAvailable()
    submitFaults.withLock { $0 = [Self.noDevice] }
    try Plug().send([0, 0, 0x59, 0, 0, 0, 0, 0])
    #expect(await recorder.next(1) == "1")
    #expect(await recorder.next() == .unavailable("the keypad was unplugged"))
    try await replug(keypad)
    try Plug().type([0x5A])
    #expect(await nextKey() == .key("2"))
    keypad.close()
  }

  /// The report arrives between the decision to stop and the cancellation, which then has no effect.
  @Test("A report during the end of reading is discarded, and the keypad is released")
  func aReportDuringTheEndOfReadingIsDiscardedAndTheKeypadIsReleased() async throws {
    let keypad = try USBKeypad(into: recorder)
    _ = await recorder.untilAvailable()
    let plug = try Plug()
    beforeCancel.withLock {
      $0 = {
        try? plug.send([0, 0, 0x59, 0, 0, 0, 0, 0])
        usleep(300_000)
      }
    }
    keypad.close()
    #expect(beforeCancel.withLock { $0 == nil })
    // The next instance can claim the keypad and receives the next key.
    let next = Recorder()
    let again = try USBKeypad(into: next)
    #expect(await next.untilAvailable() == ["no keypad is plugged in"])
    try plug.type([0x5A])
    #expect(await next.next(1) == "2")
    again.close()
    recorder.press(.enter)
    #expect(await recorder.next() == .key("e"))
  }
}
