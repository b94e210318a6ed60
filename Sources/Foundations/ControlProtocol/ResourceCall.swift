// SPDX-License-Identifier: Apache-2.0
package import JSONValues

/// A request to a resource server, sent with the access token of the logged-in user.
package struct ResourceCall: Equatable, Sendable {
  /// The maximum size of a body in bytes.
  package static let longestBody = 256 << 10
  /// The maximum size of the response's body in bytes.
  package static let longestResponse = 1 << 20

  package var account: String
  package var method: String
  /// An https address.
  package var url: String
  /// The media type of the body; at most 256 bytes.
  package var contentType: String?
  package var body: Base64Bytes?

  package init(account: String, method: String, url: String, contentType: String? = nil, body: [UInt8]? = nil) {
    self.account = account
    self.method = method
    self.url = url
    self.contentType = contentType
    self.body = body.map { Base64Bytes($0) }
  }
}

extension ResourceCall: Codable {
  private enum CodingKeys: String, CodingKey {
    case account, method, url, body
    case contentType = "content_type"
  }

  package init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      account: try members.decode(String.self, forKey: .account),
      method: try members.decode(String.self, forKey: .method), url: try members.decode(String.self, forKey: .url),
      contentType: try members.decodeIfPresent(String.self, forKey: .contentType))
    body = try members.decodeIfPresent(Base64Bytes.self, forKey: .body)
    func require(_ isFine: Bool, _ key: CodingKeys) throws {
      guard isFine else {
        throw DecodingError.dataCorruptedError(forKey: key, in: members, debugDescription: "too long")
      }
    }
    try require(contentType?.utf8.count ?? 0 <= 256, .contentType)
    try require(body?.bytes.count ?? 0 <= Self.longestBody, .body)
  }
}

/// One line of the service's answer: the response's status first, then its body in parts.
package enum ResourceReply: Equatable, Sendable {
  /// - Parameter size: the number of bytes of the body.
  case head(status: Int, contentType: String?, size: Int)
  case part([UInt8])

  /// The maximum size of a part in bytes.
  package static let longestPart = 48 << 10
}

extension ResourceReply: Codable {
  private enum CodingKeys: String, CodingKey {
    case status, size, part
    case contentType = "content_type"
  }

  package init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: CodingKeys.self)
    if let part = try members.decodeIfPresent(Base64Bytes.self, forKey: .part) {
      self = .part(part.bytes)
    } else {
      self = .head(
        status: try members.decode(Int.self, forKey: .status),
        contentType: try members.decodeIfPresent(String.self, forKey: .contentType),
        size: try members.decode(Int.self, forKey: .size))
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var members = encoder.container(keyedBy: CodingKeys.self)
    switch self {
    case .head(let status, let contentType, let size):
      try members.encode(status, forKey: .status)
      try members.encodeIfPresent(contentType, forKey: .contentType)
      try members.encode(size, forKey: .size)
    case .part(let bytes): try members.encode(Base64Bytes(bytes), forKey: .part)
    }
  }
}

/// The origins that an account may call.
package struct OriginsResponse: Codable, Sendable {
  package var account: String
  package var allowedOrigins: [String]

  package init(account: String, allowedOrigins: [String]) {
    self.account = account
    self.allowedOrigins = allowedOrigins
  }

  enum CodingKeys: String, CodingKey {
    case account
    case allowedOrigins = "allowed_origins"
  }
}
