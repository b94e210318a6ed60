// SPDX-License-Identifier: Apache-2.0
import DisplayText
package import MobileAuth
package import ServerBackends

extension PingAM {
  /// Describes a stored message.
  /// - Parameter now: the board's wall clock, in milliseconds since 1970. Used to report a request as expired before
  ///   the service has recorded that.
  package static func summary(
    of delivered: DeliveredMessage, for record: AccountRecord, now: Int64
  ) throws(StateStoreError) -> MessageSummary {
    let mechanism = try Mechanism(record)
    let kept = mechanism.flatMap { try? StoredMessage(delivered, of: $0) }
    return MessageSummary(
      transaction: delivered.transaction, account: delivered.account,
      receivedAtMilliseconds: delivered.receivedAtMilliseconds, state: state(of: delivered, kept?.message, now: now),
      type: kept?.message.kind.name, pushType: kept?.message.kind.pushType, message: kept?.message.shownText,
      context: kept?.message.context?.sanitized(atMost: PushMessage.contextLimit))
  }

  private static func state(
    of delivered: DeliveredMessage, _ message: PushMessage?, now: Int64
  ) -> DeliveredMessage.State {
    let received = delivered.receivedAtMilliseconds
    guard let message, delivered.state == .pending, !delivered.isBeingAnswered,
      received >= PingAMServerClient.earliestPlausible, now >= received + message.timeToLive * 1000
    else { return delivered.state }
    return .expired
  }
}
