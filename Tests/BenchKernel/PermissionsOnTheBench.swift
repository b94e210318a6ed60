// SPDX-License-Identifier: Apache-2.0
import GPIO
import Glibc
import Secrets
import Synchronization
import Testing
import USBKeypad

/// The rules in `udev/` with the bench kernel's own udev: which users can open the devices. The group exists only
/// inside.
@Suite("Permissions on the bench", .serialized, .enabled(if: isBenchKernel, elsewhere), .timeLimit(.minutes(2)))
final class PermissionsOnTheBench {
  private static let group: gid_t = 4711
  /// Exists while the program of `permission(for:)` gives access.
  private static let permission = "/tmp/permission"
  /// As `udev/README.md` has it, for the keypads of both sockets.
  private static let keypadRule =
    #"ACTION!="remove", SUBSYSTEM=="usb", ENV{DEVTYPE}=="usb_device", ATTR{idVendor}=="1d6b","#
    + #" ATTR{idProduct}=="010[45]", GROUP:="approval-token", MODE:="0660""#

  init() throws {
    // udevd reads rules again only when it has nothing else to do, and answers after that.
    let status = system(
      """
      udevadm settle --timeout=20
      grep -q ^approval-token: /etc/group || echo approval-token:x:\(Self.group): >>/etc/group
      mkdir -p /etc/udev/rules.d && cp udev/70-approval-token.rules /etc/udev/rules.d/ &&
        echo '\(Self.keypadRule)' >/etc/udev/rules.d/71-approval-token-keypad.rules && udevadm control --reload &&
        udevadm control --ping
      """)
    guard status == 0 else { throw BenchError(what: "installing the rules: status \(status)") }
  }

  deinit {
    _ = system(
      """
      panel unplug 2>/dev/null
      rm -f \(Self.permission) /etc/udev/rules.d/7*-approval-token*; udevadm control --reload
      """)
  }

  @Test("The chip belongs to the group, which the error names") func theChipBelongsToTheGroupWhichTheErrorNames() throws
  {
    let bench = try Bench()
    let node = try #require(try describeChips().first?.get().path)
    try waitForRules(on: node)
    #expect(seteuid(65534) == 0)
    let refused = describeChips()
    #expect(seteuid(0) == 0)
    #expect(refused == [.failure(.notPermitted(path: node, group: "approval-token"))])
    withExtendedLifetime(bench) {}
  }

  @Test("The keypad belongs to the group, which the error names") func theKeypadBelongsToTheGroupWhichTheErrorNames()
    throws
  {
    let node = try plugKeypad()
    #expect(seteuid(65534) == 0)
    defer { _ = seteuid(0) }
    let keypad = try USBKeypad(into: Nobody())
    let expected = USBKeypadError.notPermitted(path: node, group: "approval-token")
    blockUntil { keypad.trouble != .notPluggedIn }
    #expect(keypad.trouble == expected)
    keypad.close()
  }

  @Test("A chip whose permissions are set after the start is used within seconds") func lateChipPermissions() throws {
    let bench = try Bench()
    let node = try #require(try describeChips().first?.get().path)
    try waitForRules(on: node)
    #expect(system("chmod 600 \(node)") == 0)
    let permit = try permission(for: node)
    #expect(seteuid(65534) == 0)
    defer { _ = seteuid(0) }
    let lines = LineBank(chip: [Bench.label], inputs: [InputLine(offset: 0)], outputs: [], consumer: "test") { _, _ in }
    let refused = GPIOError.notPermitted(path: node, group: "approval-token")
    blockUntil { lines.trouble == refused }
    #expect(lines.trouble == refused)
    permit()
    blockUntil { lines.trouble == nil }
    #expect(lines.trouble == nil)
    lines.close()
    withExtendedLifetime(bench) {}
  }

  /// udev sets the permissions after the kernel has made the device; no event reports this to libusb, which wakes by
  /// itself only once a minute.
  @Test("A keypad whose permissions are set after the start is claimed within seconds")
  func lateKeypadPermissions() throws {
    let node = try plugKeypad()
    let permit = try permission(for: node)
    #expect(seteuid(65534) == 0)
    defer { _ = seteuid(0) }
    let keypad = try USBKeypad(into: Nobody())
    blockUntil { keypad.trouble != .notPluggedIn }
    #expect(keypad.trouble == .notPermitted(path: node, group: "approval-token"))
    permit()
    blockUntil { keypad.trouble == nil }
    #expect(keypad.trouble == nil)
    keypad.close()
  }

  /// Fails if each second brings the error of the one and then that of the other.
  @Test("Two keypads that cannot be opened are one fault, that of the first") func twoKeypads() throws {
    let first = try plugKeypad()
    #expect(system("panel plug keypad 1") == 0)
    defer { _ = system("panel unplug 1") }
    blockUntil { (try? describeKeypads().count) == 2 }
    // Root's group is still one of this process: without the rule it could open the second one.
    try waitForRules(on: try #require(try describeKeypads().first { $0.path != first }?.path))
    #expect(seteuid(65534) == 0)
    defer { _ = seteuid(0) }
    let faults = Faults()
    let keypad = try USBKeypad(into: faults)
    blockUntil { keypad.trouble != .notPluggedIn }
    sleep(4)
    keypad.close()
    let refused = faults.all.dropFirst()
    #expect(refused.count == 1 && refused.allSatisfy { $0.hasPrefix("no permission for ") }, "\(faults.all)")
  }

  /// - Returns: the keypad's device node.
  private func plugKeypad() throws -> String {
    #expect(system("panel plug") == 0)
    try blockUntil { try !describeKeypads().isEmpty }
    let node = try #require(try describeKeypads().first?.path)
    try waitForRules(on: node)
    return node
  }

  /// A device node is there before udev hears of it, so that `udevadm settle` is not enough.
  private func waitForRules(on node: String) throws {
    try blockUntil { try owner(of: node) == (Self.group, 0o660) }
    #expect(try owner(of: node) == (Self.group, 0o660))
  }

  /// Starts a program of root that gives all users access to a device node when the result is called, until the end of
  /// the test. It repeats this: udev applies its rules again after a driver was bound to the device.
  private func permission(for node: String) throws -> () -> Void {
    let start = Self.permission
    let status = system(
      """
      rm -f \(start)
      (until [ -e \(start) ]; do sleep 0.1; done; while [ -e \(start) ]; do chmod 666 \(node); sleep 0.1; done) \
        >/dev/null 2>&1 &
      """)
    guard status == 0 else { throw BenchError(what: "waiting for \(start): status \(status)") }
    return { close(open(start, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)) }
  }

  private func owner(of path: String) throws -> (gid_t, mode_t) {
    var status = stat()
    guard stat(path, &status) == 0 else { throw BenchError(what: "\(path): errno \(errno)") }
    return (status.st_gid, status.st_mode & 0o777)
  }
}

private final class Faults: KeySink {
  private let texts = Mutex<[String]>([])

  var all: [String] { texts.withLock { $0 } }

  func press(_ key: KeyPress) {}
  func keypadIsUnavailable(_ why: String) { texts.withLock { $0.append(why) } }
  func keypadIsAvailable() {}
}

private struct Nobody: KeySink {
  func press(_ key: KeyPress) {}
  func keypadIsUnavailable(_ why: String) {}
  func keypadIsAvailable() {}
}
