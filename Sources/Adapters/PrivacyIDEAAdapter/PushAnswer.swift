// SPDX-License-Identifier: Apache-2.0
import Cryptography
import JSONValues

/// An answer to a challenge: the text to sign and the body to send.
enum PushAnswer: Sendable, Equatable {
  case accept(presence: String?)
  case decline(Reason?)

  /// The reasons that the server knows. It treats any other text as a decline without a reason.
  enum Reason: String, Sendable {
    /// The user did not start the login.
    case unknownTrigger = "unknown_trigger"
    /// The user started the login and cancels it.
    case canceled = "cancelled"
  }

  /// The signed fields after nonce and serial, in order.
  private var signedFields: [String] {
    switch self {
    case .accept(let presence): presence.map { [$0] } ?? []
    case .decline(let reason): ["decline"] + (reason.map { [$0.rawValue] } ?? [])
    }
  }

  func signedText(nonce: String, serial: String) -> String {
    ([nonce, serial] + signedFields).joined(separator: "|")
  }

  /// The body is JSON because servers decode form fields twice, which would corrupt an option with a percent sign.
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
