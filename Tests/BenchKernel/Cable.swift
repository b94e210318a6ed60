// SPDX-License-Identifier: Apache-2.0
import Dispatch
import Glibc
import Secrets
import Synchronization
import Testing
import USBKeypad

/// Records the events of a keypad and lets a test wait for them.
final class Recorder: KeySink {
  enum Event: Equatable {
    /// A digit, or the first letter of another kind of key.
    case key(Character)
    case available
    case unavailable(String)
  }

  let events: AsyncStream<Event>
  private let continuation: AsyncStream<Event>.Continuation

  init() { (events, continuation) = AsyncStream.makeStream() }

  func press(_ key: KeyPress) {
    let name: Character =
      if case .digit(let digit) = key { digit.withExposedSecret { Character(UnicodeScalar($0)) } } else {
        "\(key)".first!
      }
    continuation.yield(.key(name))
  }
  func keypadIsUnavailable(_ why: String) { continuation.yield(.unavailable(why)) }
  func keypadIsAvailable() { continuation.yield(.available) }

  /// The next event; nil if none comes in a minute, with the state of the kernel and of its processes as an issue.
  func next() async -> Event? {
    let event = await withTaskGroup(of: Event?.self) { [events] group in
      group.addTask {
        for await event in events { return event }
        return nil
      }
      group.addTask {
        try? await Task.sleep(for: .seconds(60))
        return nil
      }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
    if event == nil {
      let look =
        "ps -eo pid,stat,wchan:32,args; grep --no-messages --text . /proc/[0-9]*/task/*/comm /proc/[0-9]*/task/*/syscall; ls /sys/bus/usb/devices; dmesg | tail -n 40; true"
      Issue.record("no event of the keypad within a minute:\n\((try? Site.run(look)) ?? "")")
    }
    return event
  }

  func next(_ count: Int) async -> String {
    var typed = ""
    for _ in 0..<count {
      guard case .key(let key) = await next() else { return typed + "?" }
      typed.append(key)
    }
    return typed
  }

  /// A transfer may fail before the kernel reports that the device is gone.
  func untilUnplugged() async -> Bool {
    while case .unavailable(let why) = await next() {
      if why == "the keypad was unplugged" { return true }
    }
    return false
  }

  /// The errors before the keypad is available.
  func untilAvailable() async -> [String] {
    var obstacles: [String] = []
    while case .unavailable(let why) = await next() { obstacles.append(why) }
    return obstacles
  }
}

/// The gadget: the device side of the USB connection.
struct Plug {
  static func panel(_ words: String) throws {
    guard system("panel \(words)") == 0 else { throw BenchError(what: "panel \(words)") }
  }

  /// Opened only once: a gadget accepts reports faster than it can be opened.
  let file: Int32

  init(_ device: String = "/dev/hidg0") throws {
    file = open(device, O_RDWR | O_CLOEXEC)
    guard file >= 0 else { throw BenchError(what: "\(device): errno \(errno)") }
  }

  func send(_ report: [UInt8]) throws {
    guard write(file, report, report.count) == report.count else { throw BenchError(what: "report: errno \(errno)") }
  }

  /// Presses and releases every key.
  func type(_ usages: [UInt8]) throws {
    for usage in usages {
      try send([0, 0, usage, 0, 0, 0, 0, 0])
      try send([0, 0, 0, 0, 0, 0, 0, 0])
    }
  }
}

/// The kernel's input devices. They receive the keys that no program has claimed.
func inputDevices() throws -> [String] {
  try contents("/proc/bus/input/devices").split(separator: "\n").filter { $0.hasPrefix("H:") }.map(String.init)
}

/// The number of interfaces of USB devices that are claimed by programs instead of kernel drivers.
func claimedInterfaces() throws -> Int {
  try Site.run("ls /sys/bus/usb/drivers/usbfs").split(separator: "\n").count { $0.contains(":") }
}

func inputDevicesAppear() async throws -> Bool {
  for _ in 0..<100 {
    if try !inputDevices().isEmpty { return true }
    try await Task.sleep(for: .milliseconds(50))
  }
  return false
}

/// A thread: a write to a gadget blocks until the host reads, and must not block the test's own thread.
final class Thread {
  private var thread = pthread_t()
  private let ended = DispatchSemaphore(value: 0)

  init(_ body: @escaping () -> Void) {
    final class Box {
      let body: () -> Void
      init(_ body: @escaping () -> Void) { self.body = body }
    }
    let box = Box { [ended] in
      body()
      ended.signal()
    }
    pthread_create(
      &thread, nil,
      {
        Unmanaged<Box>.fromOpaque($0!).takeRetainedValue().body()
        return nil
      }, Unmanaged.passRetained(box).toOpaque())
  }

  /// Waits for its end, at most 60 s.
  /// - Parameter what: what it does, named in the issue.
  func join(_ what: String) {
    guard ended.wait(timeout: .now() + 60) == .success else {
      Issue.record("not within 60 s: the end of \(what)")
      return
    }
    pthread_join(thread, nil)
  }
}
