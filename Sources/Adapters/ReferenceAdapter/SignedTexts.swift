// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
import MobileAuth
import ReferenceProtocol

extension VerifiedTexts {
  /// - Parameter request: decrypted, with a verified signature.
  init(_ request: ApprovalRequest) {
    self.init(
      signedWith: .openPGP, type: request.type.sanitized,
      message: request.message?.sanitizedText(atMost: Self.longestMessage),
      pushMessage: request.pushMessage?.sanitizedText(atMost: Self.longestMessage),
      digest: (request.message ?? request.pushMessage).map { SHA256.hash(Array($0.utf8)).lowercaseHex })
  }
}

extension ApprovalRequest {
  /// Checks that the pending list, which is not signed, shows what the server signed. A text that the list leaves out
  /// is not compared.
  /// - Throws: `.notHandleable` for a list with another text.
  func requireSameTexts(as listed: PendingMobileAuthRequest) throws(TokenServerError) {
    if let message = listed.message, message != pushMessage?.sanitized {
      throw .notHandleable("the pending list shows another message than the one that the token server signed")
    }
    if let name = listed.summary.type, name != type.sanitized {
      throw .notHandleable("the pending list shows another type than the one that the token server signed")
    }
  }
}
