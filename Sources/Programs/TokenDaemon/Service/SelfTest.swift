// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import FrontPanel
import MobileAuth

/// The service's test of itself: the vault can be read, the lines of the button and the LED are held, and the request
/// handler reacts. It needs no network: an outage must not make a new version count as bad. Neither does a keypad that
/// is unplugged.
struct SelfTest: Sendable {
  /// How long the request handler has to react.
  static let patience = Duration.seconds(10)
  private static let pause = Duration.milliseconds(50)

  let subject: any WatchdogSubject
  let panel: FrontPanel
  let environment: TokenEnvironment
  /// Throws if the vault cannot be read.
  let readVault: @Sendable () throws -> Void

  func run() async throws -> SelfTestResponse {
    let vault: String?
    do {
      try readVault()
      vault = nil
    } catch { vault = "\(error)" }
    return SelfTestResponse(checks: [
      .init(subject: "vault", failure: vault),
      .init(subject: "panel", failure: await panel.buttonTrouble),
      .init(subject: "handler", failure: try await handlerFailure()),
    ])
  }

  /// Wakes the handler, and waits until it waits again. One that works is watched by the watchdog.
  private func handlerFailure() async throws -> String? {
    let former = subject.handlerState
    subject.endWait()
    let limit = environment.now + Self.patience
    while true {
      switch (former, subject.handlerState) {
      case (_, .working): return nil
      case (.waiting(let number), .waiting(let now)) where now == number: break
      case (_, .waiting): return nil
      case (_, .failed): return "it does not run because of an error, which the log has"
      case (_, .absent): break
      }
      guard environment.now < limit else { return "it has not reacted for \(Self.patience.inSeconds)" }
      try await environment.sleep(for: Self.pause)
    }
  }
}
