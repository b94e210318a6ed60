// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import Testing

/// `approval-token serve` with real lines and a real keypad and a token server: only the board differs from production.
/// The tests of a suite use the same service, one after the other.
@Suite("The service on the bench", .serialized, .enabled(if: isBenchKernel, elsewhere), .timeLimit(.minutes(20)))
struct ServiceOnTheBench {
  @Suite("One process", .serialized, .timeLimit(.minutes(10)), .withSite(isSplit: false)) struct OneProcess {
    @Test("A hold accepts") func hold() async throws { try await holdAccepts(at: .current) }
    @Test("The second button denies") func deny() async throws { try await secondButtonDenies(at: .current) }
    @Test("The chip is removed during a hold") func chip() async throws { try await chipIsRemoved(at: .current) }
    @Test("The keypad is unplugged in the middle of a PIN") func keypad() async throws {
      try await keypadIsUnplugged(at: .current)
    }
    @Test("A wrong PIN is shown") func wrongPIN() async throws { try await wrongPINIsShown(at: .current) }
    @Test("A badge, the button and the keypad") func badge() async throws {
      try await badgeBesideTheKeypad(at: .current)
    }
    @Test("It sleeps while nothing happens") func idle() async throws { try await sleeps(at: .current) }
  }

  @Suite("Two processes", .serialized, .timeLimit(.minutes(10)), .withSite(isSplit: true)) struct TwoProcesses {
    @Test("A hold accepts") func hold() async throws { try await holdAccepts(at: .current) }
    @Test("The second button denies") func deny() async throws { try await secondButtonDenies(at: .current) }
    @Test("The chip is removed during a hold") func chip() async throws { try await chipIsRemoved(at: .current) }
    @Test("The keypad is unplugged in the middle of a PIN") func keypad() async throws {
      try await keypadIsUnplugged(at: .current)
    }
    @Test("A wrong PIN is shown") func wrongPIN() async throws { try await wrongPINIsShown(at: .current) }
    @Test("A badge, the button and the keypad") func badge() async throws {
      try await badgeBesideTheKeypad(at: .current)
    }
    @Test("It sleeps while nothing happens") func idle() async throws { try await sleeps(at: .current) }
  }

  /// The combinations of colors that are lit during `duration`, and the number of changes.
  private static func colors(of bench: Bench, for duration: Duration) async throws -> (seen: Set<[Bool]>, changes: Int)
  {
    var seen: Set<[Bool]> = []
    var (last, changes): ([Bool]?, Int) = (nil, 0)
    let end = ContinuousClock.now + duration
    while ContinuousClock.now < end {
      let now = try [Bench.Line.red, .green, .blue].map { try bench.isHigh($0) }
      if let last, last != now { changes += 1 }
      last = now
      seen.insert(now)
      try? await Task.sleep(for: .milliseconds(10))
    }
    return (seen, changes)
  }

  private static let dark = [false, false, false]
  private static let blue = [false, false, true]
  private static let amber = [true, true, false]

  fileprivate static func holdAccepts(at site: Site) async throws {
    #expect(!(try site.printedStatus().contains("TROUBLE")))
    // A hold accepts; until then the LED blinks blue, once a second. The enrollment was on the panel before, so three
    // white flashes may precede. The lines for white are switched one after the other, which may be visible.
    let first = try await site.ask("login")
    let asking = try await colors(of: site.bench, for: .seconds(4))
    #expect(asking.seen.isSuperset(of: [Self.dark, Self.blue]) && (3...28).contains(asking.changes), "\(asking)")
    try await site.act(until: "decided request \(first)") { try await site.hold() }
    #expect(try await site.isAuthenticated(first))
  }

  fileprivate static func secondButtonDenies(at site: Site) async throws {
    // The second button denies.
    let second = try await site.ask("login")
    try await site.act(until: "decided request \(second)") {
      try site.bench.press(.deny)
      try await Task.sleep(for: .milliseconds(200))
      try site.bench.release(.deny)
    }
    #expect(try await !site.isAuthenticated(second))
  }

  fileprivate static func chipIsRemoved(at site: Site) async throws {
    // The chip is removed during a hold that would have accepted.
    let third = try await site.ask("login")
    try await Task.sleep(for: .milliseconds(800))
    try site.bench.press()
    try await Task.sleep(for: .milliseconds(500))
    try site.bench.removeChip()
    try await site.log("trouble: GPIO chip bench-panel is gone")
    try await site.log("panel-unavailable request \(third)")
    #expect(try site.printedStatus().contains("TROUBLE   "))
    // After its return the button is released and the fault is reported as ended; nothing was decided in the meantime.
    try site.bench.makeChip()
    try await site.troublesEnd()
    try await site.log("over: GPIO chip bench-panel is gone")
    #expect(try !site.hasLogged("decided request \(third)"))
    try await site.act(until: "decided request \(third)") { try await site.hold() }
    #expect(try await site.isAuthenticated(third))
  }

  fileprivate static func keypadIsUnplugged(at site: Site) async throws {
    // A PIN is typed up to the middle, the keypad is unplugged and plugged in again, and the PIN is typed again.
    let fourth = try await site.ask("payment")
    let pinWanted = try await colors(of: site.bench, for: .seconds(4))
    // The two lines are switched one after the other, which may be visible.
    #expect(
      pinWanted.seen.isSuperset(of: [Self.dark, Self.amber]) && pinWanted.changes >= 3,
      "\(pinWanted)")
    #expect(pinWanted.seen.allSatisfy { !$0[2] })
    try site.press(String(Site.pin.prefix(3)))
    try Site.run("panel unplug")
    try await site.log("trouble: keypad: the keypad was unplugged")
    #expect(try site.printedStatus().contains("TROUBLE   keypad: the keypad was unplugged"))
    try Site.run("panel plug")
    try await site.troublesEnd()
    // The digits before the interruption were discarded, so the rest is not a PIN.
    try site.press(String(Site.pin.suffix(2)), enter: true)
    #expect(try !site.hasLogged("decided request \(fourth)"))
    try await site.type(Site.pin, when: "PIN wanted")
    #expect(try await site.isAuthenticated(fourth))
  }

  fileprivate static func wrongPINIsShown(at site: Site) async throws {
    // A wrong PIN is not approved, and the LED shows that in red; the right PIN is, in green.
    let fifth = try await site.ask("payment")
    let voltmeter = Voltmeter(site.bench)
    try await site.type("24601", when: "PIN wanted")
    _ = try await eventually("a wrong PIN in the status") { try site.attempts() == [1, 2] ? true : nil }
    try await site.type(Site.pin, when: "PIN wanted")
    #expect(try await site.isAuthenticated(fifth))
    try await site.shows("idle, connected")
    let seen = voltmeter.stop()
    #expect(seen.isSuperset(of: [[], [.red, .green], [.red], [.green]]), "\(seen)")
    #expect(seen.contains { $0.contains(.buzzer) })
  }

  fileprivate static func badgeBesideTheKeypad(at site: Site) async throws {
    // A plug-in, the button and the keypad answer the same requests: the plug-in after a hold, the PIN instead of it.
    try await site.register("badge", isLoggedIn: false)
    let sixth = try await site.ask("transfer")
    try await site.act(until: "decided request \(sixth)") { try await site.hold() }
    #expect(try await site.isAuthenticated(sixth))
    #expect(try site.hasLogged("accept by badge"))
    let seventh = try await site.ask("transfer")
    try await site.type(Site.pin, when: "confirmation wanted")
    #expect(try await site.isAuthenticated(seventh))
    #expect(try site.hasLogged("accept by PIN"))
  }

  fileprivate static func sleeps(at site: Site) async throws {
    // Without requests and with all devices attached it sleeps. Threads without work end after some seconds.
    try await Task.sleep(for: .seconds(20))
    // A busy machine only adds wake-ups: while threads start slowly, further threads are started. The quietest of three
    // periods is therefore measured.
    var perSecond = Double.infinity
    for _ in 1...3 where perSecond > 0.5 {
      perSecond = min(perSecond, Double(try await site.wakeUps(within: 30)) / 30)
    }
    print("idle, with button, LED, buzzer and keypad attached: \(perSecond) wake-ups per second")
    #expect(perSecond > 0 && perSecond <= 1)
  }
}
