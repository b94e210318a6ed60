// SPDX-License-Identifier: Apache-2.0
import CUSB
import Glibc
import Secrets
import Threads

/// The main loop of a keypad's thread: sleep in libusb until a device is plugged in or unplugged or a key is pressed.
/// libusb itself wakes the thread once a minute at most; while a device is refused, the thread wakes each second.
final class USBLoop {
  /// The number of consecutive failed transfers after which a keypad is treated as faulty.
  private static let patience = 5

  /// How long after a change of the device nodes they are compared with the known devices: one device causes several
  /// changes.
  private static let settling = Duration.milliseconds(250)
  /// The pause before a comparison that failed is tried again.
  private static let retryPause = Duration.seconds(1)

  private let state: USBState
  private var context: OpaquePointer
  /// Nil if libusb hears of new devices by itself.
  private let watch: NodeWatch?
  /// When the device nodes are compared with the known devices; nil if they have not changed.
  private var comparison: ContinuousClock.Instant?
  private var hotplug: libusb_hotplug_callback_handle?

  /// The hotplug events that have not been handled. The hotplug callback may call almost no function of libusb.
  private var changes: [(device: OpaquePointer, isArrival: Bool)] = []
  /// Matching devices that could not be claimed, in the order of their arrival. Retried each time the thread wakes.
  private var refused: [OpaquePointer] = []
  /// Why the first of them could not be claimed when all were last tried. With the errors of all, each second would
  /// bring news.
  private var refusal: USBKeypadError?
  /// All matching keypads are claimed, so that none types on the console. The first one is read.
  private var connections: [Connection] = []
  /// Whether libusb may still use a connection that was closed: its context must stay.
  private var hasLeak = false

  init(_ state: USBState, watch: NodeWatch?) {
    self.state = state
    self.watch = watch
    context = state.context.pointer
  }

  func run() {
    state.notifySink()
    followDevices()
    while !state.isEnded {
      handleHotplugChanges()
      serviceConnections()
      if connections.isEmpty, let refusal { state.isUnavailable(refusal) }
      // A transfer that the calls above waited for may have taken the interrupt of `USBState.end`.
      if changes.isEmpty, !state.isEnded { waitForEvents() }
      if let due = comparison, due <= .now { compareNodes() }
    }
    forgetDevices()
  }

  /// Reports the present devices and the changes of them in `changes`.
  private func followDevices() {
    var handle: libusb_hotplug_callback_handle = 0
    let events = LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED.rawValue | LIBUSB_HOTPLUG_EVENT_DEVICE_LEFT.rawValue
    let any = LIBUSB_HOTPLUG_MATCH_ANY
    let status = libusb_hotplug_register_callback(
      context, Int32(events), Int32(LIBUSB_HOTPLUG_ENUMERATE.rawValue), any, any, any,
      { _, device, event, loop in
        guard let device, let loop else { return 0 }
        Unmanaged<USBLoop>.fromOpaque(loop).takeUnretainedValue().changes.append(
          (libusb_ref_device(device), event == LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED))
        return 0
      }, Unmanaged.passUnretained(self).toOpaque(), &handle)
    hotplug = status == 0 ? handle : nil
    if status != 0 { state.isUnavailable(.failed("libusb_hotplug_register_callback", status)) }
  }

  /// Closes all devices.
  private func forgetDevices() {
    if let hotplug { libusb_hotplug_deregister_callback(context, hotplug) }
    hotplug = nil
    for connection in connections { close(connection) }
    connections = []
    for change in changes { libusb_unref_device(change.device) }
    for device in refused { libusb_unref_device(device) }
    (changes, refused) = ([], [])
  }

  /// Compares the devices on the bus with the known ones. If libusb has not heard of a change, starts again with a new
  /// context, which reads the bus: an entry at the keypad is then lost. A keypad that stays is not reported missing.
  private func compareNodes() {
    comparison = nil
    guard let present = try? describeHIDDevices().filter(state.selection.matches) else { return compareLater() }
    let paths = Set(present.map(\.path))
    let refusedPaths = refused.compactMap { KeypadDescription($0)?.path }
    // A device that has left cannot be described, and its leaving is not heard of: nothing of it is open.
    let hasLeft = refusedPaths.count < refused.count
    guard hasLeft || paths != Set(connections.map(\.description.path) + refusedPaths) else { return }
    var opened: OpaquePointer?
    guard libusb_init(&opened) == 0, let opened else { return compareLater() }
    let isFirstGone = connections.first.map { !paths.contains($0.description.path) } ?? false
    let isWithoutKeypad = connections.isEmpty && paths.isEmpty && !refused.isEmpty
    forgetDevices()
    if isFirstGone { state.isUnavailable(.unplugged) } else if isWithoutKeypad { state.isUnavailable(.notPluggedIn) }
    context = opened
    let former = state.replace(USBContext(pointer: opened))
    if !hasLeak { libusb_exit(former.pointer) }
    followDevices()
    // A device that only could not be described at this moment is found then.
    if hasLeft { compareLater() }
  }

  /// After what may pass, such as a lack of memory or descriptors: without a further change of the nodes, nothing else
  /// would find the keypad.
  private func compareLater() { comparison = .now + Self.retryPause }

  /// Returns after an event, or after a second if a device was refused: no event reports that udev has set its
  /// permissions or that another program has released it.
  private func waitForEvents() {
    if let watch { return waitForEvents(or: watch) }
    guard !refused.isEmpty else {
      libusb_handle_events_completed(context, nil)
      return
    }
    var moment = timeval(tv_sec: 1, tv_usec: 0)
    libusb_handle_events_timeout_completed(context, &moment, nil)
  }

  /// Returns also after a change of the device nodes.
  private func waitForEvents(or watch: NodeWatch) {
    var descriptors = [pollfd(fd: watch.descriptor, events: Int16(POLLIN), revents: 0)]
    if let list = libusb_get_pollfds(context) {
      var next = list
      while let entry = next.pointee {
        descriptors.append(pollfd(fd: entry.pointee.fd, events: entry.pointee.events, revents: 0))
        next += 1
      }
      libusb_free_pollfds(list)
    }
    let second = Duration.seconds(1)
    let wait = comparison.map { min($0 - .now, second) } ?? (refused.isEmpty ? nil : second)
    poll(&descriptors, nfds_t(descriptors.count), wait?.pollMilliseconds ?? -1)
    if descriptors[0].revents != 0 {
      watch.drain()
      comparison = comparison ?? .now + Self.settling
    }
    var moment = timeval()
    libusb_handle_events_timeout_completed(context, &moment, nil)
  }

  private func handleHotplugChanges() {
    let wereRefused = refused
    let news = changes
    (refused, changes, refusal) = ([], [], nil)
    var hasLeft = false
    for device in wereRefused {
      if news.contains(where: { $0.device == device && !$0.isArrival }) {
        hasLeft = true
      } else if KeypadDescription(device) == nil {
        // It cannot be described while it is being unplugged: an event follows.
        refused.append(libusb_ref_device(device))
      } else {
        meet(device)
      }
      libusb_unref_device(device)
    }
    for change in news {
      if change.isArrival { meet(change.device) } else { part(from: change.device, why: .unplugged) }
      libusb_unref_device(change.device)
    }
    if hasLeft, connections.isEmpty, refused.isEmpty { state.isUnavailable(.notPluggedIn) }
  }

  private func meet(_ device: OpaquePointer) {
    guard !connections.contains(where: { $0.device == device }), let description = KeypadDescription(device),
      state.selection.matches(description)
    else { return }
    do throws(USBKeypadError) {
      let connection = try Connection(device, description, sink: state.sink, givesBack: state.givesBack)
      connections.append(connection)
      if connections.count == 1 { listenToFirst() }
    } catch { refuse(device, error) }
  }

  private func refuse(_ device: OpaquePointer, _ why: USBKeypadError) {
    refused.append(libusb_ref_device(device))
    refusal = refusal ?? why
  }

  private func part(from device: OpaquePointer, why: USBKeypadError) {
    guard let index = connections.firstIndex(where: { $0.device == device }) else { return }
    close(connections.remove(at: index))
    guard index == 0 else { return }
    state.isUnavailable(why)
    listenToFirst()
  }

  /// Reads the first keypad that has not misbehaved.
  private func listenToFirst() {
    while let index = connections.firstIndex(where: { fault(of: $0) == nil }) {
      connections.swapAt(0, index)
      let connection = connections[0]
      do throws(USBKeypadError) {
        try connection.listen()
        return state.isAvailable()
      } catch {
        // If another keypad can be read instead, `isAvailable` follows.
        if error == .unplugged { state.isUnavailable(error) } else { refuse(connection.device, error) }
        close(connections.removeFirst())
      }
    }
    if let fault = connections.first.flatMap({ self.fault(of: $0) }) { state.isUnavailable(.misbehaved(fault)) }
  }

  /// How the keypad has misbehaved; nil if it has not. It stays claimed, so that it does not type on the console.
  private func fault(of connection: Connection) -> String? {
    switch connection.failure {
    case .misbehaved(let how): how
    case .transfer(let how) where connection.failuresInARow >= Self.patience: "\(how) \(Self.patience) times in a row"
    case .gone, .transfer, nil: nil
    }
  }

  private func serviceConnections() {
    guard let connection = connections.first, let failure = connection.failure else { return }
    if let fault = fault(of: connection) {
      state.isUnavailable(.misbehaved(fault))
      return listenToFirst()
    }
    guard case .transfer(let how) = failure else { return part(from: connection.device, why: .unplugged) }
    // The lost report may have contained a key, so the sink discards the digits typed so far.
    state.isUnavailable(.failed(call: "reading the keypad", name: how))
    // A device that is being unplugged fails first and disappears a moment later.
    var moment = timeval(tv_sec: 0, tv_usec: 200_000)
    libusb_handle_events_timeout_completed(context, &moment, nil)
    if changes.isEmpty { listenToFirst() }
  }

  private func close(_ connection: Connection) {
    // libusb may still write into the transfer's memory, so leak the connection instead of releasing it.
    if !connection.close(context) {
      _ = Unmanaged.passRetained(connection)
      hasLeak = true
    }
  }
}
