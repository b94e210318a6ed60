// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The driver of a fingerprint authenticator over the driver of its reader, which only compares. The reader answers
/// with data for a finger that matches, and cancels with `noMatch` for one that does not.
package final class FingerprintDriver: AuthenticatorDriver {
  /// The reason with which a reader cancels if the finger is not the registered one …
  package static let noMatch = "no match"
  /// … and if there was none for the reader's time limit.
  package static let noFinger = "no finger within the time limit"

  /// The number of fingers in a row that do not match after which the registration ends. A reader's threshold can be
  /// low: with more tries, another person's finger could match.
  package static let mostMismatches = 3

  private let reader: any AuthenticatorDriver
  /// The fingers that did not match since the last one that did, by registration. In memory only, as the token that a
  /// match would use: after a restart, the PIN comes first. At the limit the count stays, because the end of the
  /// registration may not have been stored: the reader is asked no more, until a finger is registered.
  private let mismatches = Mutex<[[UInt8]: Int]>([:])

  package init(_ reader: any AuthenticatorDriver) { self.reader = reader }

  package var authenticator: String { reader.authenticator }
  package var kind: Authenticator.Kind { .biometric }
  package var input: DriverInput { reader.input }
  package var isAvailable: Bool { reader.isAvailable }

  package func events(for call: DriverCall) -> AsyncStream<DriverEvent> {
    AsyncStream { continuation in
      let task = Task {
        continuation.yield(await answer(to: call) { continuation.yield($0) })
        continuation.finish()
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }

  /// Asks the reader again after each finger that does not match, up to the limit.
  private func answer(to call: DriverCall, _ report: (DriverEvent) -> Void) async -> DriverEvent {
    guard call.step != .authenticate || !call.registration.isEmpty else { return .failed("no finger is registered") }
    while true {
      guard call.step != .authenticate || !isExhausted(call.registration) else {
        return .exhausted("\(Self.mostMismatches) fingers did not match", revokes: true)
      }
      var answer = DriverEvent.failed("the reader ended without an answer")
      for await event in reader.events(for: call) {
        if event.isAnswer { answer = event } else { report(event) }
      }
      switch answer {
      case .canceled(Self.noMatch) where call.step == .authenticate:
        if countMismatch(of: call.registration) < Self.mostMismatches { report(.retry("another finger")) }
      case .canceled(Self.noFinger) where call.step == .authenticate:
        return .exhausted(Self.noFinger, revokes: false)
      case .canceled(let why): return .failed(why)
      case .data(let data):
        note(nil, of: call.step == .authenticate ? call.registration : data.registration)
        return answer
      default: return answer
      }
      if Task.isCancelled { return .failed("canceled") }
    }
  }

  private func countMismatch(of registration: [UInt8]) -> Int {
    mismatches.withLock { mismatches in
      let count = (mismatches[registration] ?? 0) + 1
      mismatches[registration] = count
      return count
    }
  }

  private func isExhausted(_ registration: [UInt8]) -> Bool {
    mismatches.withLock { $0[registration] ?? 0 } >= Self.mostMismatches
  }

  private func note(_ count: Int?, of registration: [UInt8]) { mismatches.withLock { $0[registration] = count } }
}
