import COpenSSL

/// Why a cryptographic operation gave nothing. Never says how far a secret was from right.
public enum CryptographyError: Error, Equatable, Sendable {
  /// Not a key, signature or point of the form the operation takes; the text names what.
  case malformed(String)
  /// The authentication tag or signature does not belong to these bytes.
  case notAuthentic
  /// OpenSSL refused for a reason that is not in the input; the text is OpenSSL's own.
  case libraryFailure(String)
}

/// What OpenSSL last complained about on this thread, and an empty queue afterwards.
func libraryFailure(_ call: String) -> CryptographyError {
  let code = ERR_get_error()
  ERR_clear_error()
  var text = [CChar](repeating: 0, count: 256)
  ERR_error_string_n(code, &text, text.count)
  let end = text.firstIndex(of: 0) ?? text.endIndex
  return .libraryFailure("\(call): \(String(decoding: text[..<end].map(UInt8.init(bitPattern:)), as: UTF8.self))")
}
