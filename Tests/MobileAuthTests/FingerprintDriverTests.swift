// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import Testing

/// The driver of a fingerprint over a scripted reader.
@Suite("The driver of a fingerprint", .timeLimit(.minutes(1))) struct FingerprintDriverTests {
  private let reader = ScriptedDriver("finger", kind: .biometric)
  private let driver: FingerprintDriver
  private let match = DriverEvent.data(AuthenticatorData(SecretBytes(copying: [])))
  private let noMatch = DriverEvent.canceled(FingerprintDriver.noMatch)

  init() { driver = FingerprintDriver(reader) }

  /// Uses the driver once. The reader says these events, each answer in another use of it.
  private func use(
    in step: DriverCall.Step = .authenticate, registration: [UInt8] = [1], _ events: DriverEvent...
  ) async -> [DriverEvent] {
    let call = DriverCall(
      step: step, server: "h", account: "A", authenticator: "finger", challenge: [], registration: registration)
    // Counted before the driver can ask the reader.
    var (said, uses) = ([DriverEvent](), reader.calls.count)
    var iterator = driver.events(for: call).makeAsyncIterator()
    for event in events {
      uses += 1
      await HandlerFixture.turn { reader.calls.count == uses }
      reader.say(event)
      reader.end()
      if let heard = await iterator.next() { said.append(heard) }
    }
    if let rest = await iterator.next() { said.append(rest) }
    return said
  }

  @Test("A finger that matches is an answer") func matchingFinger() async {
    #expect(await use(match) == [match])
    #expect(reader.calls.map(\.registration) == [[1]])
  }

  @Test("Two fingers that do not match are tries, the third ends the registration") func threeFingers() async {
    #expect(
      await use(noMatch, noMatch, noMatch) == [
        .retry("another finger"), .retry("another finger"), .exhausted("3 fingers did not match", revokes: true),
      ])
    // The next registration begins at zero.
    #expect(await use(registration: [2], noMatch, match) == [.retry("another finger"), match])
  }

  /// Fails if an attacker gets new tries with each request.
  @Test("Fingers that do not match count over several uses, until one matches") func countOverUses() async {
    #expect(await use(noMatch, .failed("gone")) == [.retry("another finger"), .failed("gone")])
    #expect(await use(noMatch, match) == [.retry("another finger"), match])
    #expect(await use(noMatch, .failed("gone")) == [.retry("another finger"), .failed("gone")])
    #expect(await use(noMatch, noMatch).last == .exhausted("3 fingers did not match", revokes: true))
  }

  /// Fails if a registration whose end could not be stored gets three more tries.
  @Test("At the limit the reader is asked no more, until a finger is registered") func limit() async {
    let over = DriverEvent.exhausted("3 fingers did not match", revokes: true)
    #expect(await use(noMatch, noMatch, noMatch).last == over)
    for _ in 1...2 { #expect(await use() == [over]) }
    #expect(reader.calls.count == 3)
    // Also if its template is the same, as with a simulated reader.
    let data = DriverEvent.data(AuthenticatorData(SecretBytes(copying: []), registration: [1]))
    #expect(await use(in: .register, registration: [], data) == [data])
    #expect(await use(match) == [match])
  }

  @Test("A reader that waits in vain leaves the PIN, and counts nothing") func noFinger() async {
    #expect(
      await use(.canceled(FingerprintDriver.noFinger)) == [.exhausted(FingerprintDriver.noFinger, revokes: false)])
    #expect(await use(noMatch, noMatch, match).last == match)
  }

  @Test("Other reasons of a reader deny nothing", arguments: ["the reader was removed", "the reader is too hot"])
  func otherReasons(why: String) async {
    #expect(await use(.canceled(why)) == [.failed(why)])
  }

  @Test("A registration passes on what the reader says") func registration() async {
    let data = DriverEvent.data(AuthenticatorData(SecretBytes(copying: []), registration: [7]))
    #expect(await use(in: .register, registration: [], data) == [data])
    #expect(await use(in: .register, registration: [], noMatch) == [.failed(FingerprintDriver.noMatch)])
  }

  /// Fails if a reader is asked to compare with nothing.
  @Test("Without a registered finger, the reader is not asked") func nothingRegistered() async {
    #expect(await use(registration: []) == [.failed("no finger is registered")])
    #expect(reader.calls.isEmpty)
  }
}
