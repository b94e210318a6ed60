// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
import Logging
import Secrets
import Synchronization
import Testing

@testable import ReferenceServer
@testable import TokenServerCore
@testable import TokenServerHTTP

/// A clock for limits and nonces that the test advances.
final class ManualUptime: Sendable {
  private let value = Mutex(Duration.zero)
  var now: Duration { value.withLock { $0 } }
  func advance(by duration: Duration) { value.withLock { $0 += duration } }
}

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct DPoPNonceTests {
  @Test("Fresh for at least one and at most five minutes") func freshForAtLeastOneAndAtMostFiveMinutes() {
    let uptime = ManualUptime()
    let nonces = DPoPNonces { uptime.now }
    uptime.advance(by: .milliseconds(29_999))
    let nonce = nonces.current()
    #expect(nonces.isFresh(nonce))
    uptime.advance(by: .milliseconds(60_000))
    #expect(nonces.isFresh(nonce))
    uptime.advance(by: .milliseconds(240_000))
    #expect(!nonces.isFresh(nonce))
  }

  @Test("Changes") func changes() {
    let uptime = ManualUptime()
    let nonces = DPoPNonces { uptime.now }
    let first = nonces.current()
    uptime.advance(by: .milliseconds(30_000))
    #expect(nonces.current() != first)
  }

  @Test("Foreign nonces are not fresh") func foreignNoncesAreNotFresh() {
    let nonces = DPoPNonces()
    var altered = bytes(base64URL: nonces.current())!
    altered[39] ^= 1
    for nonce in ["", "x", DPoPNonces().current(), altered.base64URL] { #expect(!nonces.isFresh(nonce)) }
  }

  @Test("A nonce with a wrong MAC is rejected for any bytes")
  func wrongTags() {
    let nonces = DPoPNonces()
    for byte in UInt8.min...UInt8.max {
      for rest in [UInt8(0x00), 0x7F, 0x80, 0xFF] {
        for position in 0..<8 {
          var nonce = [UInt8](repeating: rest, count: 40)
          nonce[position] = byte
          #expect(!nonces.isFresh(nonce.base64URL))
        }
      }
    }
  }

  @Test("A nonce of an extreme period is rejected even with a valid MAC")
  func extremeSteps() {
    let steps: [Int64] = [0, 1000]
    for current in steps {
      let nonces = DPoPNonces { .seconds(current * 30) }
      let extremes: [Int64] = [.min, .min + 1, current + 1, current - 9, .max - 1, .max]
      for step in extremes { #expect(!nonces.isFresh(nonces.nonce(ofStep: step))) }
      #expect(nonces.isFresh(nonces.nonce(ofStep: current)))
    }
  }

  /// The key is in the database, and the clocks differ by some seconds.
  @Test("Several servers accept each other's nonces", arguments: [-29, 0, 29])
  func shared(ahead seconds: Int64) {
    let key = SecretBytes(copying: [UInt8](repeating: 7, count: 32))
    let time = Duration.seconds(1_800_000_000)
    let servers = [time, time + .seconds(seconds)].map { time in DPoPNonces(sharedKey: key) { time } }
    for server in servers { for other in servers { #expect(server.isFresh(other.current())) } }
    let late = DPoPNonces(sharedKey: key) { time + .seconds(301) }
    #expect(!late.isFresh(servers[0].current()))
    #expect(!servers[0].isFresh(late.current()))
    let foreign = DPoPNonces(sharedKey: SecretBytes(copying: [UInt8](repeating: 8, count: 32))) { time }
    #expect(!servers[0].isFresh(foreign.current()))
  }

  @Test("Forgotten") func forgotten() {
    let nonces = DPoPNonces()
    let nonce = nonces.current()
    nonces.forgetAll()
    #expect(!nonces.isFresh(nonce))
    #expect(nonces.isFresh(nonces.current()))
  }
}

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ReplayCacheTests {
  @Test("Seen for its lifetime and by its owner") func seenForItsLifetimeAndByItsOwner() {
    let uptime = ManualUptime()
    let cache = ReplayCache(lifetime: .seconds(1), capacity: 10, share: 10) { uptime.now }
    #expect(cache.remember("a", of: "x") == .new)
    #expect(cache.remember("a", of: "y") == .new)
    uptime.advance(by: .milliseconds(999))
    #expect(cache.remember("a", of: "x") == .seen)
    uptime.advance(by: .milliseconds(1))
    #expect(cache.remember("a", of: "x") == .seen)
    uptime.advance(by: .milliseconds(5000))
    #expect(cache.remember("a", of: "x") == .new)
  }

  @Test("Full is said") func fullIsSaid() {
    let cache = ReplayCache(lifetime: .seconds(1), capacity: 2, share: 2) { .zero }
    #expect(cache.remember("a", of: "x") == .new)
    #expect(cache.remember("b", of: "x") == .new)
    #expect(cache.remember("c", of: "y") == .full)
    #expect(cache.remember("a", of: "x") == .seen)
    cache.forgetAll()
    #expect(cache.remember("a", of: "x") == .new)
  }
}

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ReplayShareTests {
  @Test("One client cannot use up the capacity of others")
  func share() {
    let uptime = ManualUptime()
    let cache = ReplayCache(lifetime: .seconds(1), capacity: 10, share: 3) { uptime.now }
    for proof in 1...3 { #expect(cache.remember("\(proof)", of: "busy") == .new) }
    #expect(cache.remember("4", of: "busy") == .tooMany)
    #expect(cache.remember("1", of: "busy") == .seen)
    for client in 1...7 { #expect(cache.remember("1", of: "client \(client)") == .new) }
    uptime.advance(by: .milliseconds(1000))
    #expect(cache.remember("4", of: "busy") == .new)
  }
}

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ReplayReserveTests {
  @Test("Clients that use up the capacity leave the reserve to others") func reserve() {
    let cache = ReplayCache(lifetime: .seconds(1), capacity: 6, share: 3, reserve: 2, reservedShare: 1) { .zero }
    for client in ["busy", "busier"] { for proof in 1...3 { #expect(cache.remember("\(proof)", of: client) == .new) } }
    #expect(cache.remember("1", of: "quiet") == .new)
    #expect(cache.remember("2", of: "quiet") == .full)
    #expect(cache.remember("1", of: "other") == .new)
    #expect(cache.remember("1", of: "third") == .full)
  }
}

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CallbackScheduleTests {
  @Test(
    "Delays",
    arguments: [(1, 1_000), (2, 5_000), (3, 30_000), (4, 120_000), (5, 600_000), (6, 1_800_000), (60, 1_800_000)])
  func delays(attempts: Int, milliseconds: Int64) {
    #expect(CallbackSchedule.delay(afterFailures: attempts, jitter: 0) == .milliseconds(milliseconds))
    #expect(CallbackSchedule.delay(afterFailures: attempts, jitter: -1) == .milliseconds(milliseconds * 8 / 10))
    #expect(CallbackSchedule.delay(afterFailures: attempts, jitter: 1) == .milliseconds(milliseconds * 12 / 10))
  }

  @Test(
    "Urls",
    arguments: [
      ("https://a/b", true), ("http://127.0.0.1:1/x?y=z", true), ("HTTP://a", true), ("ftp://a", false), ("a", false),
      ("https://", false), ("https:///x", false), ("https://a/#f", false), ("", false), ("https://a", true),
      ("https://portal.example:65535/x?y=%20", true), ("https://[2001:db8::1]:443/", true), ("https://a:443", true),
      ("https://portal:65536/", false), ("https://portal:0/", false), ("https://portal:/", false),
      ("https://portal:99999999999999999999/", false), ("https://portal:+1/", false), ("https://portal:1e3/", false),
      ("https://portal/\r\nX-Injected: 1", false), ("https://portal/\n", false), ("https://portal/ x", false),
      ("https://portal/\u{e9}", false), ("https://p\u{f6}rtal/", false), ("https://portal/%", false),
      ("https://portal/%2", false), ("https://portal/%zz", false), ("https://user:secret@portal/", false),
      ("https://portal/a@b", true), ("https://[::1", false), ("https://[::1]x/", false), ("https://[::zz]/", false),
      ("https://[::1\0x]/", false),
      ("https://a..b/", false), ("https://portal\\x/", false), ("https://portal/\"", false),
      ("https://portal/{x}", false),
      ("https:/portal/", false), ("https//portal", false), ("http+unix://x/y", false), ("https://portal/[x]", false),
      ("https://portal/\0", false), ("https://" + String(repeating: "a", count: 64) + "/", false),
      ("https://a/" + String(repeating: "x", count: 2048), false),
    ])
  func urls(text: String, isAcceptable: Bool) { #expect(CallbackURL.isAcceptable(text) == isAcceptable) }
}

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CallbackAddressTests {
  @Test(
    "A private address is called only if the configuration allows it",
    arguments: [
      ("127.0.0.1", false), ("10.1.2.3", false), ("172.16.0.1", false), ("172.31.255.255", false), ("172.32.0.1", true),
      ("192.168.1.1", false), ("169.254.169.254", false), ("100.64.0.1", false), ("100.128.0.1", true),
      ("0.0.0.0", false), ("224.0.0.1", false), ("255.255.255.255", false), ("9.9.9.9", true), ("::1", false),
      ("::", false), ("fe80::1", false), ("fe80::1%eth0", false), ("fd00::1", false), ("::ffff:127.0.0.1", false),
      ("::ffff:9.9.9.9", true), ("64:ff9b::7f00:1", false), ("2002:7f00:1::", false), ("2620:fe::fe", true),
      ("ff02::1", false), ("", false), ("portal", false), ("unknown", false),
    ])
  func privateAddresses(address: String, isPublic: Bool) {
    #expect(CallbackConnection.mayCall(address, []) == isPublic)
  }

  @Test("Allowed addresses") func allowedAddresses() throws {
    let allowed = [try #require(AddressRange("127.0.0.0/8")), try #require(AddressRange("10.1.2.3"))]
    for address in ["127.0.0.1", "127.255.255.255", "10.1.2.3", "::ffff:10.1.2.3"] {
      #expect(CallbackConnection.mayCall(address, allowed))
    }
    for address in ["10.1.2.4", "128.0.0.1%x", "192.168.0.1", "::1"] where address != "128.0.0.1%x" {
      #expect(!CallbackConnection.mayCall(address, allowed))
    }
    #expect(try #require(AddressRange("172.16.0.0/12")).contains([172, 31, 0, 1]))
    #expect(try !#require(AddressRange("172.16.0.0/12")).contains([172, 32, 0, 1]))
    #expect(try #require(AddressRange("0.0.0.0/0")).contains([1, 2, 3, 4]))
    for text in ["", "x", "127.0.0.1/33", "127.0.0.1/-1", "127.0.0.1/", "::1/129", "127.0.0.1/+8"] {
      #expect(AddressRange(text) == nil)
    }
  }
}

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct SourceTests {
  @Test("An IPv6 address counts as its /64, an embedded IPv4 address as itself")
  func names() {
    #expect(ConnectionSource.name(of: "2001:db8:1:2:3::4") == ConnectionSource.name(of: "2001:db8:1:2:ffff::9"))
    #expect(ConnectionSource.name(of: "2001:db8:1:2::1") != ConnectionSource.name(of: "2001:db8:1:3::1"))
    #expect(ConnectionSource.name(of: "::ffff:192.0.2.1") == "192.0.2.1")
    #expect(ConnectionSource.name(of: nil) == "unknown" && ConnectionSource.name(of: "x") == "unknown")
  }
}

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct SanitizedLogTests {
  @Test("Every log line is sanitized, including its metadata")
  func log() {
    let lines = Lines()
    var handler = SanitizedLog(lines)
    handler.logLevel = .trace
    handler[metadataKey: "a"] = "x\ny"
    let log = Logger(label: "l") { _ in handler }
    log.error("one\ntwo \u{1B}[31m", metadata: ["m": "3\n4"])
    log.error("three", metadata: ["a": "new"])
    #expect(lines.all == ["onetwo [31m a=xy m=34", "three a=new"])
    #expect(lines.metadata.isEmpty)
  }
}

/// A log handler that stores lines.
private final class Lines: LogHandler {
  private let state = Mutex((lines: [String](), metadata: Logger.Metadata()))
  var all: [String] { state.withLock { $0.lines } }
  var logLevel: Logger.Level {
    get { .trace }
    set {}
  }
  var metadata: Logger.Metadata {
    get { state.withLock { $0.metadata } }
    set { state.withLock { $0.metadata = newValue } }
  }
  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }
  func log(event: LogEvent) {
    let metadata = (event.metadata ?? [:]).map { "\($0)=\($1)" }.sorted()
    state.withLock { $0.lines.append(([event.message.description] + metadata).joined(separator: " ")) }
  }
}
