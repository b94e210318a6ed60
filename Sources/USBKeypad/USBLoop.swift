import CUSB
import Glibc
import Secrets

/// The life of a keypad's thread: sleep in libusb until something is plugged in, pulled out or typed. libusb itself wakes
/// once a minute, and never more often.
final class USBLoop {
  /// Transfers that fail one after the other before a keypad is given up.
  private static let patience = 5

  private let state: USBState
  private let context: OpaquePointer
  private var hotplug: libusb_hotplug_callback_handle = 0

  /// What the hotplug callback saw. In it, hardly anything of libusb's may be called.
  private var changes: [(device: OpaquePointer, isArrival: Bool)] = []
  /// Meant, but not to be had: tried again whenever the thread wakes.
  private var refused: [OpaquePointer] = []
  /// All that are meant are claimed, so that none types on the console; the first one is listened to.
  private var connections: [Connection] = []

  init(_ state: USBState, context: OpaquePointer) {
    self.state = state
    self.context = context
  }

  func run() {
    state.tellSink()
    let events = LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED.rawValue | LIBUSB_HOTPLUG_EVENT_DEVICE_LEFT.rawValue
    let any = LIBUSB_HOTPLUG_MATCH_ANY
    let status = libusb_hotplug_register_callback(
      context, Int32(events), Int32(LIBUSB_HOTPLUG_ENUMERATE.rawValue), any, any, any,
      { _, device, event, loop in
        guard let device, let loop else { return 0 }
        Unmanaged<USBLoop>.fromOpaque(loop).takeUnretainedValue().changes.append(
          (libusb_ref_device(device), event == LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED))
        return 0
      }, Unmanaged.passUnretained(self).toOpaque(), &hotplug)
    if status != 0 { state.isUnavailable(.failed("libusb_hotplug_register_callback", status)) }
    while !state.isEnded {
      lookAtChanges()
      lookAfterConnections()
      if changes.isEmpty { libusb_handle_events_completed(context, nil) }
    }
    if status == 0 { libusb_hotplug_deregister_callback(context, hotplug) }
    for connection in connections { close(connection) }
    connections = []
    for change in changes { libusb_unref_device(change.device) }
    for device in refused { libusb_unref_device(device) }
  }

  private func lookAtChanges() {
    let wereRefused = refused
    let news = changes
    (refused, changes) = ([], [])
    for device in wereRefused {
      if news.contains(where: { $0.device == device && !$0.isArrival }) {
        state.isUnavailable(.notPluggedIn)
      } else {
        meet(device)
      }
      libusb_unref_device(device)
    }
    for change in news {
      if change.isArrival { meet(change.device) } else { part(from: change.device, why: .unplugged) }
      libusb_unref_device(change.device)
    }
  }

  private func meet(_ device: OpaquePointer) {
    guard !connections.contains(where: { $0.device == device }), let description = KeypadDescription(device),
      state.selection.matches(description)
    else { return }
    do throws(USBKeypadError) {
      let connection = try Connection(device, description, sink: state.sink, givesBack: state.givesBack)
      connections.append(connection)
      if connections.count == 1 { listenToFirst() }
    } catch {
      if connections.isEmpty { state.isUnavailable(error) }
      refused.append(libusb_ref_device(device))
    }
  }

  private func part(from device: OpaquePointer, why: USBKeypadError) {
    guard let index = connections.firstIndex(where: { $0.device == device }) else { return }
    close(connections.remove(at: index))
    guard index == 0 else { return }
    state.isUnavailable(why)
    listenToFirst()
  }

  private func listenToFirst() {
    while let connection = connections.first {
      do throws(USBKeypadError) {
        try connection.listen()
        return state.isAvailable()
      } catch {
        // Whoever comes after it says otherwise.
        state.isUnavailable(error)
        if error != .unplugged { refused.append(libusb_ref_device(connection.device)) }
        close(connections.removeFirst())
      }
    }
  }

  private func lookAfterConnections() {
    guard let connection = connections.first, let failure = connection.failure else { return }
    switch failure {
    case .gone: part(from: connection.device, why: .unplugged)
    // Still claimed, and so still mute towards the console.
    case .misbehaved(let how): state.isUnavailable(.misbehaved(how))
    case .transfer(let how) where connection.failuresInARow < Self.patience:
      // What was lost may have been a key: whatever is typed so far counts for nothing.
      state.isUnavailable(.failed(call: "reading the keypad", name: how))
      // A device that is being pulled out fails first and is gone a moment later.
      var moment = timeval(tv_sec: 0, tv_usec: 200_000)
      libusb_handle_events_timeout_completed(context, &moment, nil)
      if changes.isEmpty { listenToFirst() }
    case .transfer(let how): state.isUnavailable(.misbehaved("\(how) \(Self.patience) times in a row"))
    }
  }

  private func close(_ connection: Connection) {
    // Letting go of memory that libusb may still write into would be worse than losing it.
    if !connection.close(context) { _ = Unmanaged.passRetained(connection) }
  }
}
