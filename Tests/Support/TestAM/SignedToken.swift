// SPDX-License-Identifier: Apache-2.0
import COpenSSL
import Cryptography
import JSONValues

/// A JWT as AM reads it: its header selects the algorithm of its verification.
struct SignedToken {
  /// The error for a case in which AM's check ends with an unchecked exception.
  struct TokenError: Error, Equatable {}

  enum Algorithm: String, CaseIterable {
    case hs256 = "HS256"
    case hs384 = "HS384"
    case hs512 = "HS512"

    func tag(_ text: [UInt8], _ secret: [UInt8]) -> [UInt8] {
      var tag = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
      var count: UInt32 = 0
      precondition(
        HMAC(function, secret, Int32(secret.count), text, text.count, &tag, &count) != nil, "HMAC")
      return Array(tag[..<Int(count)])
    }

    private var function: OpaquePointer {
      switch self {
      case .hs256: EVP_sha256()
      case .hs384: EVP_sha384()
      case .hs512: EVP_sha512()
      }
    }
  }

  let claims: JSONValue
  private let algorithm: Algorithm
  private let signedText: [UInt8]
  private let signature: [UInt8]

  /// - Throws: for every text that AM's library does not accept as a JWT with a keyed hash.
  init(_ text: String) throws(TokenError) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 3, let header = Self.object(parts[0]), let claims = Self.object(parts[1]),
      let signature = bytes(base64URL: parts[2]),
      let type = header["typ"]?.text, ["JWT", "JWS", "JWE"].contains(type),
      let name = header["alg"]?.text, let algorithm = Algorithm(rawValue: name)
    else { throw TokenError() }
    self.claims = claims
    self.algorithm = algorithm
    self.signature = signature
    signedText = Array("\(parts[0]).\(parts[1])".utf8)
  }

  func isSigned(with secret: [UInt8]) -> Bool { constantTimeEqual(algorithm.tag(signedText, secret), signature) }

  private static func object(_ part: String) -> JSONValue? {
    guard let json = bytes(base64URL: part), let value = JSONValue(parsing: json), case .object = value,
      !hasRepeatedName(json)
    else { return nil }
    return value
  }

  /// - Parameter json: well-formed.
  private static func hasRepeatedName(_ json: [UInt8]) -> Bool {
    /// The member names of each open object.
    var names: [Set<String>] = []
    var latest: String?
    var index = 0
    while index < json.count {
      switch json[index] {
      case UInt8(ascii: "{"), UInt8(ascii: "["): names.append([])
      case UInt8(ascii: "}"), UInt8(ascii: "]"): names.removeLast()
      case UInt8(ascii: ":"):
        if let latest, !names[names.count - 1].insert(latest).inserted { return true }
      case UInt8(ascii: "\""):
        let start = index
        index += 1
        while json[index] != UInt8(ascii: "\"") { index += json[index] == UInt8(ascii: "\\") ? 2 : 1 }
        latest = JSONValue(parsing: Array("[".utf8) + json[start...index] + Array("]".utf8))?.list?.first?.text
      default: break
      }
      index += 1
    }
    return false
  }
}
