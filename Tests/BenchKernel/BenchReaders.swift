// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import BuiltPrograms
import Glibc
import Synchronization
import TestBadge
import TestSecurityKey

/// A security key on the USB bus, in the second socket: a gadget whose reports are those of a `TestSecurityKey`. The
/// kernel's driver makes a hidraw node of it, which `reader-key` finds as on a board.
final class KeyOnTheBus {
  private let gadget: Int32
  private let connection: Int32
  private let isUnplugged = Atomic(false)
  private var thread: Thread?

  init(_ key: TestSecurityKey) throws {
    try Plug.panel("plug security-key 1")
    gadget = open("/dev/hidg1", O_RDWR | O_CLOEXEC | O_NONBLOCK)
    connection = try connected(to: key.path, Int32(SOCK_SEQPACKET.rawValue))
    guard gadget >= 0 else { throw BenchError(what: "no security key on the bus: errno \(errno)") }
    thread = Thread { [self] in forward() }
  }

  func unplug() throws {
    isUnplugged.store(true, ordering: .relaxed)
    thread?.join("the security key on the bus")
    thread = nil
    close(gadget)
    close(connection)
    try Plug.panel("unplug 1")
  }

  private func forward() {
    // On the socket of the key, reports of the host begin with their number.
    var report = [UInt8](repeating: 0, count: 65)
    while !isUnplugged.load(ordering: .relaxed) {
      var watched = [gadget, connection].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      guard poll(&watched, 2, 50) > 0 else { continue }
      if watched[0].revents & Int16(POLLIN) != 0 {
        report[0] = 0
        let count = report.withUnsafeMutableBytes { read(gadget, $0.baseAddress! + 1, 64) }
        if count > 0 { _ = send(connection, report, count + 1, Int32(MSG_NOSIGNAL)) }
      }
      // A report waits for the host, which has not read the one before it.
      var writable = pollfd(fd: gadget, events: Int16(POLLOUT), revents: 0)
      guard watched[1].revents != 0, poll(&writable, 1, 20) == 1 else { continue }
      let count = recv(connection, &report, 64, 0)
      guard count > 0, write(gadget, report, count) == count else { return }
    }
  }
}

/// What can approve requests beside the panel: a security key on the USB bus, a badge in the virtual reader of a
/// private pcscd, and libfprint's virtual fingerprint reader, which compares names. One test at a time uses them.
final class BenchReaders: @unchecked Sendable {
  /// Those of the suite, if it has some.
  @TaskLocal static var ofSuite: BenchReaders?

  private static let folder = "/run/readers"

  let key: TestSecurityKey
  private(set) var plugged: KeyOnTheBus?
  private let cards: TestPCSC
  private let badge: TestBadge

  init() throws {
    try Site.run("mkdir -p \(Self.folder)/sensors")
    cards = try TestPCSC()
    badge = try TestBadge()
    key = try TestSecurityKey(at: "\(Self.folder)/key")
    key.set(.untouched)
  }

  func authenticators() throws -> SiteAuthenticators {
    let (key, badge) = (try BuiltProgram.path("reader-key"), try BuiltProgram.path("reader-badge"))
    let (finger, socket) = (try BuiltProgram.path("reader-finger"), cards.socket)
    // Each use of the fingerprint reader has a virtual device of its own.
    let files = [
      ("authenticators.d/key.toml", "authenticator = \"key\"\ncommand = [\"\(key)\"]"),
      (
        "authenticators.d/badge.toml",
        """
        authenticator = "badge"
        command = ["/usr/bin/env", "PCSCLITE_CSOCK_NAME=\(socket)", "\(badge)"]
        hold = true
        """
      ),
      (
        "authenticators.d/finger.toml",
        """
        authenticator = "finger"
        kind = "biometric"
        command = ["/bin/sh", "-c", "FP_VIRTUAL_DEVICE=\(Self.folder)/sensors/$$ exec \(finger) --virtual-readers 0"]
        """
      ),
    ].map { ($0.0, $0.1 + "\ntime_limit_seconds = 120\n") }
    return SiteAuthenticators(
      switches: "biometric = true\\ncustom_authenticators = true", tables: { _ in Self.tables }, files: { _ in files })
  }

  private static let tables = """
    [[authenticator]]
    id = "key"
    name = "Security key"
    kind = "custom"
    signature = "security_key"
    [[authenticator]]
    id = "badge"
    name = "Badge"
    kind = "custom"
    signature = "badge"
    [[authenticator]]
    id = "finger"
    name = "Fingerprint"
    kind = "biometric"
    [[type]]
    name = "transfer"
    method = "push_with_custom_authenticator"
    authenticator = "key"
    alternatives = ["badge", "finger"]
    request_expires_in = 600
    """

  // MARK: The security key

  func plugKey() throws { plugged = try KeyOnTheBus(key) }

  func unplugKey() throws {
    try plugged?.unplug()
    plugged = nil
  }

  /// Waits until the key is asked for a signature, after `calls` others.
  func keyIsAsked(after calls: Int) async throws {
    _ = try await eventually("the security key is asked") { key.calls.count > calls ? true : nil }
  }

  // MARK: The badge

  /// Whether the program that reads badges runs: it is started when the token asks for one.
  func isBadgeAsked() throws -> Bool { try shell("pgrep -x reader-badge").status == 0 }

  /// Presents the badge until that has the effect: a badge that is there when the program looks first does not count.
  func presentBadge(until part: String, in site: Site) async throws {
    for _ in 1...10 {
      badge.insert(into: cards)
      defer { badge.remove() }
      if (try? await site.log(part, within: .seconds(6))) != nil { return }
      badge.remove()
      // pcscd looks for cards every 0.4 s: a removal that it does not see is none.
      try await Task.sleep(for: .seconds(1))
    }
    throw BenchError(what: "no effect of the badge: \(part)")
  }

  // MARK: The fingerprint reader

  /// The virtual devices so far.
  func sensors() throws -> Set<String> {
    Set(try Site.run("ls \(Self.folder)/sensors").split(separator: "\n").map(String.init))
  }

  /// Waits until the reader is in use.
  func sensor(after known: Set<String>) async throws -> String {
    let name = try await eventually("the fingerprint reader is open") { try sensors().subtracting(known).first }
    return "\(Self.folder)/sensors/\(name)"
  }

  func scan(_ finger: String, at sensor: String) async throws {
    _ = try await eventually("the reader takes \(finger)") { () -> Bool? in
      guard let descriptor = try? connected(to: sensor, Int32(SOCK_STREAM.rawValue)) else { return nil }
      defer { close(descriptor) }
      let command = Array("SCAN \(finger)".utf8)
      return send(descriptor, command, command.count, Int32(MSG_NOSIGNAL)) == command.count ? true : nil
    }
  }
}

/// A connection to a Unix socket.
private func connected(to path: String, _ type: Int32) throws -> Int32 {
  let descriptor = socket(AF_UNIX, type | Int32(SOCK_CLOEXEC.rawValue), 0)
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
  let isConnected = withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
    }
  }
  guard isConnected else {
    close(descriptor)
    throw BenchError(what: "\(path): errno \(errno)")
  }
  return descriptor
}
