// SPDX-License-Identifier: Apache-2.0
import CUSB
import Glibc
public import Secrets
import Synchronization

/// A USB keypad, detached from the kernel's drivers during the lifetime of this object, so that its keys reach only the
/// sink. Keypads may be plugged in and unplugged at any time; the sink is notified.
///
/// A keypad types on the console until it is claimed, also for some milliseconds after it is plugged in. The `usbhid`
/// quirk in `udev/` closes this gap.
public final class USBKeypad: Sendable {
  private let state: USBState
  private let thread: Mutex<pthread_t?>

  /// - Parameters:
  ///   - selection: selects the device. If several match, all are claimed and one is read.
  ///   - givesBack: whether the kernel's drivers are attached again at the end. The keypad then types on the console.
  ///   - sink: called on the keypad's own thread.
  public init(
    _ selection: KeypadSelection = KeypadSelection(), givesBack: Bool = false, into sink: any KeySink
  ) throws(USBKeypadError) {
    var context: OpaquePointer?
    let status = libusb_init(&context)
    guard status == 0, let context else { throw .failed("libusb_init", status) }
    state = USBState(context: context, selection: selection, givesBack: givesBack, sink: sink)
    thread = Mutex(start(state))
  }

  deinit { close() }

  /// Why the keypad cannot be used now; nil while it can.
  public var trouble: USBKeypadError? { state.trouble }

  /// Stops reading and waits until that is done: some milliseconds, or 2 s if the device does not respond.
  public func close() {
    state.end()
    if let thread = thread.withLock({ $0.take() }) { pthread_join(thread, nil) }
  }
}

/// The state that a keypad's owner and its thread share. It owns the context of libusb, which is needed to wake the
/// thread.
final class USBState: Sendable {
  private struct Shared {
    var trouble: USBKeypadError? = .notPluggedIn
    var isEnded = false
  }

  let selection: KeypadSelection
  let givesBack: Bool
  let sink: any KeySink
  /// Used only by the thread, except for `libusb_interrupt_event_handler`, which any thread may call.
  nonisolated(unsafe) let context: OpaquePointer
  private let shared = Mutex(Shared())

  init(context: OpaquePointer, selection: KeypadSelection, givesBack: Bool, sink: any KeySink) {
    self.context = context
    self.selection = selection
    self.givesBack = givesBack
    self.sink = sink
  }

  deinit { libusb_exit(context) }

  var trouble: USBKeypadError? { shared.withLock { $0.trouble } }
  var isEnded: Bool { shared.withLock { $0.isEnded } }

  func end() {
    shared.withLock { $0.isEnded = true }
    libusb_interrupt_event_handler(context)
  }

  /// Reports the initial state to the sink.
  func notifySink() {
    if let trouble { sink.keypadIsUnavailable("\(trouble)") }
  }

  func isUnavailable(_ why: USBKeypadError) {
    let isNews = shared.withLock { shared in
      defer { shared.trouble = why }
      return shared.trouble != why
    }
    if isNews { sink.keypadIsUnavailable("\(why)") }
  }

  func isAvailable() {
    shared.withLock { $0.trouble = nil }
    sink.keypadIsAvailable()
  }
}

private func start(_ state: USBState) -> pthread_t {
  var thread = pthread_t()
  let status = pthread_create(
    &thread, nil,
    { context in
      guard let context else { return nil }
      let state = Unmanaged<USBState>.fromOpaque(context).takeRetainedValue()
      blockAllSignals()
      approval_usb_name_thread("keypad")
      USBLoop(state, context: state.context).run()
      return nil
    }, Unmanaged.passRetained(state).toOpaque())
  guard status == 0 else { fatalError("the thread for the keypad cannot be started: errno \(status)") }
  return thread
}

/// Signals are handled by other threads.
private func blockAllSignals() {
  var all = sigset_t()
  sigfillset(&all)
  pthread_sigmask(SIG_BLOCK, &all, nil)
}
