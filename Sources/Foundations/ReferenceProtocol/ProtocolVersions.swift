// SPDX-License-Identifier: Apache-2.0

/// The versions of the device protocol that a device or a token server supports. A device and a server can work
/// together if both support one version.
///
/// - Version 1 is the version of a peer that announces none.
/// - Version 2 adds the announcement itself.
///
/// A change that a peer can ignore, such as an optional member, needs no new version.
package struct ProtocolVersions: Sendable, Equatable {
  /// The versions that this software supports.
  package static let supported = ProtocolVersions(from: 1, to: 2)
  /// The versions of a peer that announces none.
  package static let unannounced = ProtocolVersions(from: 1, to: 1)
  /// The header with which a device announces its versions in its registration and in each call of the device API.
  package static let headerName = "Approval-Protocol"

  /// At least 1.
  package let oldest: Int
  /// At least `oldest`, at most 9999.
  package let newest: Int

  private init(from oldest: Int, to newest: Int) { (self.oldest, self.newest) = (oldest, newest) }

  /// Parses `OLDEST-NEWEST`, each a number from 1 to 9999 without leading zeros.
  package init?(_ text: String) {
    guard text.utf8.count <= 9 else { return nil }
    let numbers = text.split(separator: "-", omittingEmptySubsequences: false).map(Self.number)
    guard numbers.count == 2, let oldest = numbers[0], let newest = numbers[1], oldest <= newest else { return nil }
    self.init(from: oldest, to: newest)
  }

  private static func number(_ digits: Substring) -> Int? {
    guard (1...4).contains(digits.utf8.count), digits.first != "0",
      digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    return Int(digits)
  }

  /// The form that `init` parses.
  package var text: String { "\(oldest)-\(newest)" }

  fileprivate var sentencePart: String { oldest == newest ? "version \(oldest)" : "versions \(oldest) to \(newest)" }
}

extension ProtocolVersions: Codable {
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let versions = Self(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not OLDEST-NEWEST, from 1 to 9999")
    }
    self = versions
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}

/// A device and a token server that support no common version of the device protocol.
package struct ProtocolMismatchError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The peer whose versions are older: the one to update.
  package enum Outdated: String, Sendable {
    case device = "token"
    case server = "token server"
  }

  package let outdated: Outdated
  /// A sentence with the versions of both and the peer to update.
  package let description: String

  /// - Parameters:
  ///   - device: the versions of the device; nil if it announces none.
  ///   - server: the versions of the server; nil if it announces none.
  /// - Returns: nil if both support one version.
  package init?(device: ProtocolVersions?, server: ProtocolVersions?) {
    let (device, server) = (device ?? .unannounced, server ?? .unannounced)
    guard device.newest < server.oldest || server.newest < device.oldest else { return nil }
    outdated = device.newest < server.oldest ? .device : .server
    description =
      "the token supports \(device.sentencePart) of the device protocol, the token server \(server.sentencePart): "
      + "update the \(outdated.rawValue)"
  }
}
