// SPDX-License-Identifier: Apache-2.0
import DisplayText
import MobileAuth

extension PushMessage.Kind {
  /// A description for users and the log.
  var name: String {
    switch self {
    case .confirmation: "push"
    case .number: "push with a number"
    case .biometric: "push with user verification"
    }
  }

  /// The name that AM and the vendor's SDKs use, for programs. A kind that this version does not know is treated as
  /// `default`.
  var pushType: String {
    switch self {
    case .confirmation: "default"
    case .number: "challenge"
    case .biometric: "biometric"
    }
  }

  var numbers: [Int]? { if case .number(let numbers) = self { numbers } else { nil } }
}

extension PushMessage {
  /// AM's text for programs, without control characters, and not shortened.
  var shownText: String? { text?.sanitized(atMost: Self.messageLimit) }
}

extension VerifiedTexts {
  /// - Parameter message: with a verified signature, which covers the text and the push type.
  init(_ message: PushMessage) {
    self.init(signedWith: .hmac, type: message.kind.pushType, message: message.shownText)
  }
}
