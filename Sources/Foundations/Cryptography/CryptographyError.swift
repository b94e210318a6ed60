// SPDX-License-Identifier: Apache-2.0
import COpenSSL

/// The error of a cryptographic operation. It contains no information about a secret.
package enum CryptographyError: Error, Equatable, Sendable {
  /// The input is not a key, signature or point of the required form; the text names it.
  case malformed(String)
  /// The authentication tag or signature does not match the bytes.
  case notAuthentic
  /// OpenSSL failed for a reason other than the input; the text is OpenSSL's.
  case libraryFailure(String)
}

/// Leaves the texts of OpenSSL's errors, 80 KiB, out of memory. `CryptographyError.libraryFailure` then has OpenSSL's
/// number, which `openssl errstr` explains. libssl still loads the texts
/// of its own errors. Call before everything else.
package func omitErrorTexts() { OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS), nil) }

/// The last error of OpenSSL on this thread. Clears the error queue.
func libraryFailure(_ call: String) -> CryptographyError {
  let code = ERR_get_error()
  ERR_clear_error()
  var text = [CChar](repeating: 0, count: 256)
  ERR_error_string_n(code, &text, text.count)
  let end = text.firstIndex(of: 0) ?? text.endIndex
  return .libraryFailure("\(call): \(String(decoding: text[..<end].map(UInt8.init(bitPattern:)), as: UTF8.self))")
}
