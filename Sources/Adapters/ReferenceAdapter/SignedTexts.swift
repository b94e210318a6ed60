// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
import MobileAuth
import ReferenceProtocol
import Secrets

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
  /// The digits that the user must type; nil for none.
  /// - Throws: `.notHandleable` for a text that cannot be typed.
  var digitsToType: EnteredDigits? {
    get throws(TokenServerError) {
      guard let readBack else { return nil }
      guard (1...PIN.longest).contains(readBack.utf8.count), readBack.utf8.allSatisfy({ (0x30...0x39).contains($0) })
      else { throw .notHandleable("the digits to type are not 1 to \(PIN.longest) digits") }
      return EnteredDigits(SecretBytes(copying: Array(readBack.utf8)))
    }
  }

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
