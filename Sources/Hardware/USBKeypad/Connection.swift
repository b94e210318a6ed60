// SPDX-License-Identifier: Apache-2.0
import CUSB
import DeviceNodes
import Glibc
import HIDReports
import Secrets

/// An open and claimed keypad. The kernel's drivers are detached, so its keys reach only this process. All members are
/// used on the thread of the loop, some of them in a callback of libusb.
final class Connection {
  enum Failure: Equatable {
    /// The device was unplugged.
    case gone
    /// A transfer failed. Its contents are lost.
    case transfer(String)
    case misbehaved(String)
  }

  private static let controlTimeout: UInt32 = 1000  // ms

  let device: OpaquePointer
  let description: KeypadDescription
  /// Why no reports are read; nil while they are.
  private(set) var failure: Failure?
  private var failures = 0
  private let handle: OpaquePointer
  private let sink: any KeySink
  private let givesBack: Bool
  private var detached: [UInt8] = []
  private var claimed: [UInt8] = []

  private var decoder = BootKeyboardDecoder()
  /// Receives reports directly from the kernel. Locked memory with a fixed address.
  private var buffer: SecretBuffer
  private let transfer: UnsafeMutablePointer<libusb_transfer>
  private var isInFlight = false
  private var isClosing = false

  /// Detaches the kernel drivers and selects the boot protocol. Does not read yet.
  init(
    _ device: OpaquePointer, _ description: KeypadDescription, sink: any KeySink, givesBack: Bool
  ) throws(USBKeypadError) {
    guard let boot = description.bootInterface else { throw .noBootKeyboard }
    var opened: OpaquePointer?
    let status = libusb_open(device, &opened)
    guard status == 0, let opened else { throw Self.failure(opening: description.path, status) }
    guard let transfer = libusb_alloc_transfer(0) else {
      libusb_close(opened)
      throw .failed("libusb_alloc_transfer", LIBUSB_ERROR_NO_MEM.rawValue)
    }
    self.device = libusb_ref_device(device)
    self.description = description
    self.sink = sink
    self.givesBack = givesBack
    self.transfer = transfer
    handle = opened
    buffer = SecretBuffer(count: boot.packetBytes)
    for interface in description.hidInterfaces { try claim(interface) }
    // HID 1.11, section 7.2. Every boot keyboard must support SET_PROTOCOL (boot). SET_IDLE with an infinite duration
    // is optional: reports come on each change, or more often without it.
    try control(request: 0x0B, interface: boot.number, call: "SET_PROTOCOL")
    _ = try? control(request: 0x0A, interface: boot.number, call: "SET_IDLE")
    // SET_REPORT, output (appendix B.1): switches the NumLock LED on. A keypad that follows it does not need to send
    // NumLock around its digits. A keypad without support may reject the request.
    _ = try? control(request: 0x09, value: 0x0200, interface: boot.number, [0x01], call: "SET_REPORT")
    fill(boot)
  }

  /// Runs after `close`, or after `init` threw.
  deinit {
    libusb_free_transfer(transfer)
    for interface in claimed { libusb_release_interface(handle, Int32(interface)) }
    if givesBack { for interface in detached { libusb_attach_kernel_driver(handle, Int32(interface)) } }
    libusb_close(handle)
    libusb_unref_device(device)
  }

  /// Starts reading, or restarts it after a failed transfer.
  func listen() throws(USBKeypadError) {
    if failure != nil { libusb_clear_halt(handle, transfer.pointee.endpoint) }
    decoder.reset()
    failure = nil
    switch libusb_submit_transfer(transfer) {
    case 0: isInFlight = true
    case LIBUSB_ERROR_NO_DEVICE.rawValue: throw .unplugged
    case let status: throw .failed("libusb_submit_transfer", status)
    }
  }

  /// Stops reading. A transfer in progress belongs to libusb until its callback has run, even if it is canceled.
  /// - Returns: false if the callback did not run in time. The connection must then never be released.
  func close(_ context: OpaquePointer) -> Bool {
    isClosing = true
    if isInFlight { libusb_cancel_transfer(transfer) }
    for _ in 0..<20 where isInFlight {
      var patience = timeval(tv_sec: 0, tv_usec: 100_000)
      libusb_handle_events_timeout_completed(context, &patience, nil)
    }
    buffer.wipe()
    return !isInFlight
  }

  /// The number of consecutive failed transfers.
  var failuresInARow: Int { failures }

  /// Runs in the callback of the transfer.
  private func finished() {
    isInFlight = false
    // A report that arrived before the cancellation is discarded.
    guard !isClosing else { return buffer.wipe() }
    switch transfer.pointee.status {
    case LIBUSB_TRANSFER_COMPLETED: take(Int(transfer.pointee.actual_length))
    case LIBUSB_TRANSFER_NO_DEVICE: failure = .gone
    // Either `close` canceled the transfer, or the device is gone and the hotplug event follows.
    case LIBUSB_TRANSFER_CANCELLED: failure = failure ?? .gone
    case LIBUSB_TRANSFER_STALL: failure = .transfer("stalled")
    case LIBUSB_TRANSFER_OVERFLOW: failure = .transfer("sent more than it said it would")
    default: failure = .transfer("could not be read")
    }
    if failure != nil { failures += 1 } else { failures = 0 }
    buffer.wipe()
    guard failure == nil else { return }
    switch libusb_submit_transfer(transfer) {
    case 0: isInFlight = true
    case LIBUSB_ERROR_NO_DEVICE.rawValue: failure = .gone
    default: failure = .transfer("could not be read")
    }
  }

  private func take(_ count: Int) {
    // An empty packet is not a report.
    guard count > 0 else { return }
    let fault = buffer.withBytes { bytes -> BootKeyboardDecoder.ReportError? in
      do throws(BootKeyboardDecoder.ReportError) {
        try decoder.decode(UnsafeRawBufferPointer(rebasing: bytes.prefix(count)), into: sink)
        return nil
      } catch { return error }
    }
    if case .length(let bytes) = fault { failure = .misbehaved("sent a report of \(bytes) bytes") }
  }

  private func fill(_ boot: KeypadDescription.BootInterface) {
    let bytes = buffer.withMutableBytes { $0.baseAddress }
    libusb_fill_interrupt_transfer(
      transfer, handle, boot.endpoint, bytes?.assumingMemoryBound(to: UInt8.self), Int32(boot.packetBytes),
      { transfer in
        guard let context = transfer?.pointee.user_data else { return }
        Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue().finished()
      }, Unmanaged.passUnretained(self).toOpaque(), 0)
  }

  private func claim(_ interface: UInt8) throws(USBKeypadError) {
    switch libusb_detach_kernel_driver(handle, Int32(interface)) {
    case 0: detached.append(interface)
    // No kernel driver was attached.
    case LIBUSB_ERROR_NOT_FOUND.rawValue: break
    case let status: throw .failed("libusb_detach_kernel_driver", status)
    }
    switch libusb_claim_interface(handle, Int32(interface)) {
    case 0: claimed.append(interface)
    case LIBUSB_ERROR_BUSY.rawValue: throw .busy(interface: Int(interface))
    case let status: throw .failed("libusb_claim_interface", status)
    }
  }

  /// Sends a class request of HID to an interface.
  private func control(
    request: UInt8, value: UInt16 = 0, interface: UInt8, _ data: [UInt8] = [], call: String
  ) throws(USBKeypadError) {
    var data = data
    var status: Int32 = 0
    // These requests can be repeated safely. A keypad that was busy gets a second attempt.
    for _ in 0..<2 {
      status = libusb_control_transfer(
        handle, 0x21, request, value, UInt16(interface), &data, UInt16(data.count), Self.controlTimeout)
      if status != LIBUSB_ERROR_TIMEOUT.rawValue { break }
    }
    guard status >= 0 else { throw .failed(call, status) }
  }

  private static func failure(opening path: String, _ status: Int32) -> USBKeypadError {
    guard status == LIBUSB_ERROR_ACCESS.rawValue, let group = groupName(ofNode: path) else {
      return .failed("libusb_open", status)
    }
    return .notPermitted(path: path, group: group)
  }
}
