// SPDX-License-Identifier: Apache-2.0
import COpenSSL
import Testing

@testable import Cryptography

@Suite("Failures of OpenSSL", .timeLimit(.minutes(5))) struct CryptographyErrorTests {
  // Each in a process of its own: other tests omit the texts in this one.
  @Test("Have its number and its text") func numberAndText() async {
    await #expect(processExitsWith: .success) {
      let isText = failure() == .libraryFailure("fetch: error:0308010C:digital envelope routines::unsupported")
      #expect(isText)
    }
  }

  @Test("Have its number, if the texts are omitted") func numberOnly() async {
    await #expect(processExitsWith: .success) {
      omitErrorTexts()
      let isNumber = "\(failure())".contains("fetch: error:0308010C:lib(6)::reason(")
      #expect(isNumber)
    }
  }
}

/// That of an algorithm that does not exist.
private func failure() -> CryptographyError {
  EVP_MD_free(EVP_MD_fetch(nil, "no such digest", nil))
  return libraryFailure("fetch")
}
