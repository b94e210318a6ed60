// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import TestSecurityKey
import Testing

/// Readers, keypad and GPIO panel together: both processes of the token, with a security key at a hidraw node, a badge
/// in pcscd's reader, and a fingerprint reader, whose programs are those of the packages.
@Suite(
  "The readers on the bench", .serialized, .enabled(if: isBenchKernel, elsewhere), .timeLimit(.minutes(15)),
  .withReaders)
struct ReadersOnTheBench {
  private static let wanted = "number or other data wanted"

  private let site: Site
  private let readers: BenchReaders

  init() throws {
    site = try .current
    readers = try #require(BenchReaders.ofSuite)
  }

  fileprivate static func register(_ readers: BenchReaders, at site: Site) async throws {
    readers.key.set(.touched(after: .milliseconds(200)))
    try await site.register("key", isLoggedIn: false)
    #expect(readers.key.calls == [1, 2])
    readers.key.set(.untouched)
    try await site.register("badge", isLoggedIn: true) {
      try await readers.presentBadge(until: "authenticator-registered account alice: badge", in: site)
    }
    let known = try readers.sensors()
    try await site.register("finger", isLoggedIn: true) {
      let sensor = try await readers.sensor(after: known)
      for number in 1...7 {
        try await site.registrationSays("scan \(number) of 7")
        try await readers.scan("index", at: sensor)
      }
      try await site.type(Site.pin, when: "PIN wanted")
    }
  }

  /// Starts a request, and waits until the security key blinks.
  private func ask() async throws -> String {
    let calls = readers.key.calls.count
    let request = try await site.ask("transfer")
    try await readers.keyIsAsked(after: calls)
    try await site.shows(Self.wanted)
    return request
  }

  private func expectApproval(of request: String, _ how: String) async throws {
    try await site.log("decided request \(request) account alice: accept by \(how)")
    #expect(try await site.isAuthenticated(request))
  }

  @Test("The key approves") func keyApproves() async throws {
    let request = try await ask()
    readers.key.touch()
    try await expectApproval(of: request, "key")
  }

  /// The badge is not asked before the button is held, and the hold alone approves nothing.
  @Test("The badge approves after a hold") func badgeApproves() async throws {
    let voltmeter = Voltmeter(site.bench)
    let request = try await ask()
    #expect(try !readers.isBadgeAsked())
    var isAsked = false
    for _ in 1...5 where !isAsked {
      try await Task.sleep(for: .milliseconds(800))
      try await site.hold()
      isAsked =
        (try? await eventually("the badge is asked", within: .seconds(6)) {
          try readers.isBadgeAsked() ? true : nil
        }) ?? false
    }
    #expect(isAsked)
    #expect(try !site.hasLogged("decided request \(request)"))
    try await readers.presentBadge(until: "decided request \(request)", in: site)
    try await expectApproval(of: request, "badge")
    try await site.shows("idle, connected")
    // Violet for the prompt, blue for the hold, green for the approval.
    let seen = voltmeter.stop()
    #expect(seen.isSuperset(of: [[], [.red, .blue], [.blue], [.green]]), "\(seen)")
  }

  @Test("The finger approves") func fingerApproves() async throws {
    let known = try readers.sensors()
    let request = try await ask()
    try await readers.scan("index", at: readers.sensor(after: known))
    try await expectApproval(of: request, "finger")
  }

  @Test("The second button denies") func secondButtonDenies() async throws {
    let canceled = readers.key.canceled
    let request = try await ask()
    try await site.act(until: "decided request \(request)") {
      try site.bench.press(.deny)
      try await Task.sleep(for: .milliseconds(200))
      try site.bench.release(.deny)
    }
    #expect(try await !site.isAuthenticated(request))
    // No key blinks for a request that has ended.
    _ = try await eventually("the touch is canceled") { readers.key.canceled > canceled ? true : nil }
  }

  @Test("The key is unplugged during a request, and the PIN approves") func keyIsUnplugged() async throws {
    let request = try await ask()
    try readers.unplugKey()
    // The LED flickers, because the key was lost.
    try await Task.sleep(for: .seconds(2))
    #expect(try Site.run("ls /sys/class/hidraw").isEmpty)
    try await site.type(Site.pin, when: Self.wanted)
    try await expectApproval(of: request, "PIN")
    try readers.plugKey()
  }

  /// A key that is asked no more while a PIN is typed is asked again when the digits are discarded.
  @Test("The keypad is unplugged in the middle of a PIN, and the key approves") func keypadIsUnplugged() async throws {
    let request = try await ask()
    let calls = readers.key.calls.count
    for _ in 1...5 where try !site.meaning().contains("digits typed") {
      try await Task.sleep(for: .seconds(1))
      try site.press(String(Site.pin.prefix(3)))
    }
    try Site.run("panel unplug")
    try await site.log("trouble: keypad: the keypad was unplugged")
    try await readers.keyIsAsked(after: calls)
    readers.key.touch()
    try await expectApproval(of: request, "key")
    try Site.run("panel plug")
    try await site.troublesEnd()
  }
}

extension Trait where Self == WithSite {
  /// With a security key on the bus and readers, of which the user has registered each.
  fileprivate static var withReaders: WithSite {
    WithSite { body in
      let readers = try BenchReaders()
      let ready = Task {
        let site = try await Site(isSplit: true, readers.authenticators())
        try readers.plugKey()
        try await ReadersOnTheBench.register(readers, at: site)
        return site
      }
      let site = try await ready.finished("the registration of all readers", within: .seconds(600))
      try await BenchReaders.$ofSuite.withValue(readers) { try await body(site) }
      try readers.unplugKey()
    }
  }
}
