// SPDX-License-Identifier: Apache-2.0
import CUSB
import Glibc
package import Secrets
import Synchronization
import Threads

/// A USB keypad, detached from the kernel's drivers during the lifetime of this object, so that its keys reach only the
/// sink. Keypads may be plugged in and unplugged at any time; the sink is notified.
///
/// A keypad types on the console until it is claimed, also for some milliseconds after it is plugged in. The `usbhid`
/// quirk in `udev/` closes this gap.
package final class USBKeypad: Sendable {
  private let state: USBState
  private let thread: Mutex<LoopThread?>

  /// - Parameters:
  ///   - selection: selects the device. If several match, all are claimed and one is read.
  ///   - givesBack: whether the kernel's drivers are attached again at the end. The keypad then types on the console.
  ///   - hearsUdev: whether udev's messages reach this process. If not, the device nodes are watched.
  ///   - sink: called on the keypad's own thread.
  package init(
    _ selection: KeypadSelection = KeypadSelection(), givesBack: Bool = false, hearsUdev: Bool = true,
    into sink: any KeySink
  ) throws(USBKeypadError) {
    var context: OpaquePointer?
    let status = libusb_init(&context)
    guard status == 0, let context else { throw .failed("libusb_init", status) }
    state = USBState(
      context: USBContext(pointer: context), selection: selection, givesBack: givesBack, sink: sink)
    thread = Mutex(
      LoopThread(named: "keypad") { [state] in
        USBLoop(state, watch: hearsUdev ? nil : NodeWatch()).run()
      })
  }

  deinit { close() }

  /// Why the keypad cannot be used now; nil while it can.
  package var trouble: USBKeypadError? { state.trouble }

  /// Stops reading and waits until that is done: some milliseconds, or 2 s if the device does not respond.
  package func close() {
    state.end()
    thread.withLock { $0.take() }?.join()
  }
}

/// A context of libusb. Used only by the thread, except for `libusb_interrupt_event_handler`, which any thread may
/// call.
struct USBContext: @unchecked Sendable {
  let pointer: OpaquePointer
}

/// The state that a keypad's owner and its thread share. It owns the context of libusb, which is needed to wake the
/// thread.
final class USBState: Sendable {
  private struct Shared {
    var trouble: USBKeypadError? = .notPluggedIn
    var isEnded = false
    var context: USBContext
  }

  let selection: KeypadSelection
  let givesBack: Bool
  let sink: any KeySink
  private let shared: Mutex<Shared>

  init(context: USBContext, selection: KeypadSelection, givesBack: Bool, sink: any KeySink) {
    shared = Mutex(Shared(context: context))
    self.selection = selection
    self.givesBack = givesBack
    self.sink = sink
  }

  deinit { libusb_exit(context.pointer) }

  var context: USBContext { shared.withLock { $0.context } }

  /// Replaces the context.
  /// - Returns: the former one, which no other thread uses any longer.
  func replace(_ context: USBContext) -> USBContext {
    shared.withLock { shared in
      defer { shared.context = context }
      return shared.context
    }
  }

  var trouble: USBKeypadError? { shared.withLock { $0.trouble } }
  var isEnded: Bool { shared.withLock { $0.isEnded } }

  func end() {
    shared.withLock { shared in
      shared.isEnded = true
      libusb_interrupt_event_handler(shared.context.pointer)
    }
  }

  /// Reports the initial state to the sink.
  func notifySink() {
    if let trouble { sink.keypadIsUnavailable(trouble.text(for: selection)) }
  }

  func isUnavailable(_ why: USBKeypadError) {
    let isNews = shared.withLock { shared in
      defer { shared.trouble = why }
      return shared.trouble != why
    }
    if isNews { sink.keypadIsUnavailable(why.text(for: selection)) }
  }

  func isAvailable() {
    shared.withLock { $0.trouble = nil }
    sink.keypadIsAvailable()
  }
}
