// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials

/// Bytes that are Base64 text in JSON.
package struct Base64Bytes: Equatable, Sendable {
  package let bytes: [UInt8]

  package init(_ bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }
}

extension Base64Bytes: Codable {
  package init(from decoder: any Decoder) throws {
    let value = try decoder.singleValueContainer()
    guard let data = Data(base64Encoded: try value.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: value, debugDescription: "not Base64")
    }
    bytes = [UInt8](data)
  }

  package func encode(to encoder: any Encoder) throws {
    var value = encoder.singleValueContainer()
    try value.encode(Data(bytes).base64EncodedString())
  }
}
