// SPDX-License-Identifier: Apache-2.0
import Boards
import MobileAuth
import Secrets
import Testing

@Suite("Simulated authenticators", .timeLimit(.minutes(1))) struct SimulatedAuthenticatorTests {
  private let authenticators = SimulatedAuthenticators()
  private let call = DriverCall(step: .authenticate, server: "h", account: "A", authenticator: "voice", challenge: [])

  @Test("What is performed reaches the driver that is asked, up to its answer") func answer() async {
    #expect(!authenticators.perform(.fallback) && !authenticators.isAsked)
    let events = SimulatedDriver("voice", of: authenticators).events(for: call)
    #expect(authenticators.isAsked && authenticators.perform(.retry("louder")))
    #expect(authenticators.perform(.canceled("no")) && !authenticators.isAsked)
    #expect(!authenticators.perform(.fallback))
    var all: [DriverEvent] = []
    for await event in events { all.append(event) }
    #expect(all == [.retry("louder"), .canceled("no")])
  }

  @Test("A use that is no longer wanted is not asked any more, and the latest use is asked") func uses() async {
    let driver = SimulatedDriver("voice", of: authenticators)
    var events: AsyncStream<DriverEvent>? = driver.events(for: call)
    events = nil
    #expect(events == nil && !authenticators.isAsked)
    let (first, second) = (driver.events(for: call), driver.events(for: call))
    for await _ in first { Issue.record("the first use has ended") }
    #expect(authenticators.perform(.fallback))
    for await event in second { #expect(event == .fallback) }
  }

  @Test("Two can be asked at a time, and the end of one leaves the other") func together() async {
    func call(_ authenticator: String) -> DriverCall {
      DriverCall(
        step: .authenticate, server: "h", account: "A", authenticator: authenticator, challenge: [],
        registration: Array("index".utf8))
    }
    let reader = SimulatedDriver("finger", as: .fingerprint, of: authenticators)
    let finger = reader.events(for: call("finger"))
    let custom = SimulatedDriver("voice", of: authenticators).events(for: call("voice"))
    authenticators.set(.custom, isPresent: false)
    for await event in custom { #expect(event == .failed("unplugged")) }
    #expect(authenticators.isAsked && authenticators.present(finger: "index") && !authenticators.isAsked)
    for await event in finger { #expect(event == .data(AuthenticatorData(SecretBytes(copying: [])))) }
  }

  @Test("A key is asked for a touch, a badge for an insertion; without its reader, neither is available") func signers()
    async throws
  {
    let key = SimulatedDriver("key", as: .securityKey, of: authenticators)
    let badge = SimulatedDriver("badge", as: .badge, of: authenticators)
    #expect(key.input == .external(hold: false) && badge.input == .external(hold: true))
    let call = DriverCall(
      step: .register, server: "h", account: "A", authenticator: "x", challenge: [UInt8](repeating: 1, count: 32))
    let touched = key.events(for: call)
    #expect(try !authenticators.insert(badge: "red") && authenticators.touch())
    let inserted = badge.events(for: call)
    #expect(try !authenticators.touch() && authenticators.insert(badge: "red"))
    for events in [touched, inserted] {
      for await event in events {
        guard case .data(let data) = event else {
          Issue.record("\(event)")
          continue
        }
        #expect(data.bytes.count > 100)
      }
    }
    let pulled = badge.events(for: call)
    authenticators.set(.badge, isPresent: false)
    for await event in pulled { #expect(event == .failed("unplugged")) }
    #expect(!badge.isAvailable && key.isAvailable)
    _ = try authenticators.insert(badge: "red")
    #expect(badge.isAvailable)
  }
}
