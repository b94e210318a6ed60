// SPDX-License-Identifier: Apache-2.0
import DisplayText
import JSONValues
package import MobileAuth
import Secrets

/// The line for a plug-in: what it is asked.
struct PluginQuestion: Encodable {
  let v = 1
  let step: String
  let server: String
  let account: String
  let authenticator: String
  /// 32 bytes.
  let challenge: Base64Bytes
  let registration: Base64Bytes?

  enum CodingKeys: String, CodingKey { case v, step, server, account, authenticator, challenge, registration }

  init(_ call: DriverCall) {
    step = call.step.rawValue
    server = call.server
    account = call.account
    authenticator = call.authenticator
    challenge = Base64Bytes(call.challenge)
    registration = call.registration.isEmpty ? nil : Base64Bytes(call.registration)
  }

  /// With its line feed.
  var line: [UInt8] { JSONMessage.encode(self) + [UInt8(ascii: "\n")] }
}

/// A line of a plug-in.
package enum PluginLine {
  /// The maximum length in bytes, without the line feed.
  package static let longest = 65_536

  package struct FormError: Error, Equatable, Sendable {
    package let why: String
  }

  /// - Parameter line: without its line feed.
  /// - Throws: unless it is an object with exactly one of the members that say what happened, and no unknown member.
  package static func parse(_ line: [UInt8]) throws(FormError) -> DriverEvent {
    guard line.count <= longest else { throw FormError(why: "a line is longer than \(longest) bytes") }
    do { return try JSONMessage.decode(Members.self, from: line, numbers: nil).event } catch let error {
      throw FormError(why: error.why.sanitized)
    }
  }

  private struct Name: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  private struct Members: Decodable {
    let event: DriverEvent

    init(from decoder: any Decoder) throws {
      let members = try decoder.container(keyedBy: Name.self)
      let names = Set(members.allKeys.map(\.stringValue))
      func text(_ name: String) throws -> String {
        let text = try members.decode(String.self, forKey: Name(stringValue: name)).sanitized
        // A scalar has at most 4 bytes.
        return text.utf8.count <= 256 ? text : text.cut(atMost: 64)
      }
      func bytes(_ name: String, atMost most: Int) throws -> [UInt8] {
        let key = Name(stringValue: name)
        let bytes = try members.decode(Base64Bytes.self, forKey: key).bytes
        guard bytes.count <= most else {
          throw DecodingError.dataCorruptedError(forKey: key, in: members, debugDescription: "too long")
        }
        return bytes
      }
      switch names {
      case ["waiting"]: event = .waiting(try text("waiting"))
      case ["retry"]: event = .retry(try text("retry"))
      case ["cancel"]: event = .canceled(try text("cancel"))
      case ["fallback"]:
        guard try members.decode(Bool.self, forKey: Name(stringValue: "fallback")) else {
          throw DecodingError.dataCorruptedError(
            forKey: Name(stringValue: "fallback"), in: members, debugDescription: "not true")
        }
        event = .fallback
      case ["data"], ["data", "registration"]:
        var data = try bytes("data", atMost: AuthenticatorData.largest)
        defer { cleanse(&data) }
        let registration =
          names.contains("registration")
          ? try bytes("registration", atMost: AuthenticatorData.largestRegistration) : []
        event = .data(AuthenticatorData(SecretBytes(copying: data), registration: registration))
      default:
        throw DecodingError.dataCorrupted(
          .init(codingPath: [Name(stringValue: names.sorted().joined(separator: ","))], debugDescription: "unknown"))
      }
    }
  }
}
