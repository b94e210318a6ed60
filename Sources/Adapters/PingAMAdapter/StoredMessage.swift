// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Secrets

/// A stored push message with its original bytes, so that its signature is verified again each time it is read.
struct StoredMessage: Sendable {
  let envelope: PushEnvelope
  let message: PushMessage
  let delivered: DeliveredMessage

  /// Creates the record of a message whose signature has just been verified.
  init(
    _ envelope: PushEnvelope, _ message: PushMessage, for account: AccountID, receivedAtMilliseconds: Int64
  ) {
    self.envelope = envelope
    self.message = message
    delivered = DeliveredMessage(
      transaction: PingAM.transaction(mechanismUID: message.mechanismUID, challenge: message.challenge),
      account: account, reference: envelope.messageID, receivedAtMilliseconds: receivedAtMilliseconds,
      contents: .joining([envelope.messageID, envelope.token].map { SecretBytes(copying: Array($0.utf8)) }))
  }

  /// Reads a stored message and verifies its signature.
  /// - Throws: `.notHandleable` if the message is not signed for this mechanism, for example because the account was
  ///   enrolled again since it arrived.
  init(_ delivered: DeliveredMessage, of mechanism: Mechanism) throws(TokenServerError) {
    self.delivered = delivered
    guard let parts = delivered.contents.parts(), parts.count == 2 else { throw .notHandleable("not a push message") }
    let texts = parts.map { $0.withExposedSecret { String(decoding: $0, as: UTF8.self) } }
    envelope = PushEnvelope(messageID: texts[0], token: texts[1])
    do {
      message = try PushMessage(try PushMessage.token(texts[1]), verifiedWith: mechanism.secret)
    } catch { throw .notHandleable("\(error)") }
    guard message.mechanismUID == mechanism.metadata.uid else { throw .notHandleable("it names another mechanism") }
  }

  /// When the message was sent, in milliseconds since 1970: by AM's clock if the message says so, otherwise its
  /// arrival.
  var sentAtMilliseconds: Int64 { message.sentAtMilliseconds ?? delivered.receivedAtMilliseconds }
}
