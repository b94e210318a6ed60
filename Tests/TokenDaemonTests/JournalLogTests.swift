// SPDX-License-Identifier: Apache-2.0
import Glibc
import Logging
import MobileAuth
import Testing

@testable import TokenDaemon

@Suite(.timeLimit(.minutes(5))) struct JournalLogTests {
  private static let transaction = "00000000-0000-4000-8000-000000000001"

  /// A socket in place of journald's; standard error is said to be the same one.
  private final class Journal {
    let path = "/tmp/approval-token-journal-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
    let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue), 0)

    init() throws {
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
      let length = socklen_t(MemoryLayout<sockaddr_un>.size)
      let bound = withUnsafePointer(to: address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
      }
      try #require(bound == 0)
    }

    deinit {
      close(descriptor)
      unlink(path)
    }

    /// The value of `JOURNAL_STREAM` if standard error is this descriptor.
    var stream: String {
      var status = stat()
      fstat(descriptor, &status)
      return "\(status.st_dev):\(status.st_ino)"
    }

    func logger() throws -> Logger {
      let socket = try #require(JournalSocket(stream: stream, descriptor: descriptor, path: path))
      return Logger(label: "approval-token") { JournalLog(socket, $0) }
    }

    /// The lines of the next entry; empty if there is none.
    func entry() -> [String] {
      var message = [UInt8](repeating: 0, count: 65_536)
      let count = recv(descriptor, &message, message.count, 0)
      return String(decoding: message.prefix(max(count, 0)), as: UTF8.self).split(separator: "\n").map(String.init)
    }
  }

  @Test("An audited event is an entry with account, event and transaction") func audited() throws {
    let journal = try Journal()
    let entry = AuditEntry(
      .decided, account: AccountID("alice"), transaction: TransactionID(Self.transaction), detail: "approve, held",
      wallClockMilliseconds: 0)
    try journal.logger().info("\(entry)", metadata: TokenEvent.audited(entry).fields)
    #expect(
      journal.entry() == [
        "MESSAGE=decided request \(Self.transaction) account alice: approve, held", "PRIORITY=6",
        "SYSLOG_IDENTIFIER=approval-tokend",
        "ACCOUNT=alice", "EVENT=decided", "TRANSACTION=\(Self.transaction)",
      ])
  }

  @Test("A warning is limited and has the fields of its event") func limited() throws {
    let journal = try Journal()
    let log = LimitedLog(try journal.logger(), clock: SystemClock())
    log.report(TokenEvent.disconnected(TokenServerID("example.org"), .unreachable("no route")))
    let entry = journal.entry()
    #expect(entry.contains("PRIORITY=4"))
    #expect(entry.contains("EVENT=disconnected") && entry.contains("SERVER=example.org"))
  }

  /// Fails if a text reaches the journal as it is: a line break begins another field.
  @Test("A text of a server adds no field") func noForgedField() throws {
    let journal = try Journal()
    let text = "no route\nACCOUNT=root\n_SYSTEMD_UNIT=ssh.service\u{1B}[2J" + String(repeating: "x", count: 500_000)
    let event = TokenEvent.disconnected(TokenServerID("a\nEVENT=decided"), .unreachable(text))
    try journal.logger().warning("\(event)", metadata: event.fields)
    let entry = journal.entry()
    #expect(entry.map { $0.prefix { $0 != "=" } } == ["MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER", "EVENT", "SERVER"])
    #expect(entry.allSatisfy { $0.unicodeScalars.count < 1100 && !$0.contains("\u{1B}") })
  }

  @Test("No field has the code that a user types into a portal") func noSecrets() throws {
    let code = try #require(PortalCode(digits: "27182845", message: "Type 27182845"))
    let event = TokenEvent.code(AccountID("alice"), try #require(TransactionID(Self.transaction)), code)
    let entry = String(decoding: JournalLog.entry(.info, "\(event)", event.fields), as: UTF8.self)
    #expect(entry.contains("EVENT=code\n") && entry.contains("TRANSACTION=\(Self.transaction)\n"))
    #expect(!entry.contains("27182845"))
  }

  @Test("Without a connection to the journal, the log is standard error's", arguments: [nil, "", "1:2", "1", "x:y"])
  func otherStreams(stream: String?) throws {
    let journal = try Journal()
    #expect(JournalSocket(stream: stream, descriptor: journal.descriptor, path: journal.path) == nil)
    #expect(JournalSocket(stream: journal.stream, descriptor: -1, path: journal.path) == nil)
  }

  @Test("An entry that the journal does not take is not lost silently") func refused() throws {
    let journal = try Journal()
    let socket = try #require(
      JournalSocket(stream: journal.stream, descriptor: journal.descriptor, path: journal.path + "-absent"))
    #expect(!socket.send([1]))
    let taking = try #require(JournalSocket(stream: journal.stream, descriptor: journal.descriptor, path: journal.path))
    // Without a reader, the queue is full at some time; nothing waits for it.
    let taken = (0..<10_000).prefix { _ in taking.send([UInt8](repeating: 65, count: 500)) }.count
    #expect(taken > 0 && taken < 10_000)
  }
}
