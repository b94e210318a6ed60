import Cryptography
import JSONValues

/// An answer to a challenge: what is signed, and what is sent.
enum PushAnswer: Sendable, Equatable {
  case accept(presence: String?)
  case decline(Reason?)

  /// Anything else would count as a decline without a reason.
  enum Reason: String, Sendable {
    /// It was not me.
    case unknownTrigger = "unknown_trigger"
    /// It was me, stop it.
    case cancelled
  }

  /// The fields after nonce and serial, in the order they are signed.
  private var signedFields: [String] {
    switch self {
    case .accept(let presence): presence.map { [$0] } ?? []
    case .decline(let reason): ["decline"] + (reason.map { [$0.rawValue] } ?? [])
    }
  }

  func signedText(nonce: String, serial: String) -> String {
    ([nonce, serial] + signedFields).joined(separator: "|")
  }

  /// JSON, because servers decode form fields twice and an option with a percent sign would not survive that.
  func body(nonce: String, serial: String, key: DeviceKey) throws(CryptographyError) -> [UInt8] {
    let signature = try key.signatureOnTheWire(for: signedText(nonce: nonce, serial: serial))
    var members: [String: JSONValue] = [
      "serial": .text(serial), "nonce": .text(nonce), "signature": .text(signature),
    ]
    switch self {
    case .accept(let presence): members["presence_answer"] = presence.map { .text($0) }
    case .decline(let reason):
      members["decline"] = .text("1")
      members["decline_reason"] = reason.map { .text($0.rawValue) }
    }
    return Array(JSONValue.object(members).canonical.utf8)
  }
}
