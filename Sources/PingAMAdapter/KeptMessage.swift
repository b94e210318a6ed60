import MobileAuth
import Secrets

/// A push message on the shelf: as it came, so that its signature is checked again whenever it is taken down.
struct KeptMessage: Sendable {
  let envelope: PushEnvelope
  let message: PushMessage
  let delivered: DeliveredMessage

  /// Of a message that has just been verified.
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

  /// - Throws: `.notHandleable` if it is not the mechanism's: the account was enrolled anew meanwhile.
  init(_ delivered: DeliveredMessage, of mechanism: Mechanism) throws(TokenServerFault) {
    self.delivered = delivered
    guard let parts = delivered.contents.parts(), parts.count == 2 else { throw .notHandleable("not a push message") }
    let texts = parts.map { $0.withExposedSecret { String(decoding: $0, as: UTF8.self) } }
    envelope = PushEnvelope(messageID: texts[0], token: texts[1])
    do {
      message = try PushMessage(try PushMessage.token(texts[1]), verifiedWith: mechanism.secret)
    } catch { throw .notHandleable("\(error)") }
    guard message.mechanismUID == mechanism.facts.uid else { throw .notHandleable("it is for another mechanism") }
  }

  /// Milliseconds since 1970, by AM's clock if it told.
  var sentAtMilliseconds: Int64 { message.sentAtMilliseconds ?? delivered.receivedAtMilliseconds }
}
