// SPDX-License-Identifier: Apache-2.0
import Foundation

/// HTTP exchanges by libcurl, with the arguments of the program `curl`: the client contains no code of this project.
package struct Curl: Sendable {
  package var certificateAuthority: String?

  package init(certificateAuthority: String? = nil) { self.certificateAuthority = certificateAuthority }

  package struct Reply: Sendable {
    package let status: Int
    /// Names in lowercase.
    package let headers: [String: String]
    package let body: [UInt8]

    package var text: String { String(decoding: body, as: UTF8.self) }

    /// The body as a JSON object; empty if it is not one.
    package var json: [String: any Sendable] {
      (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: any Sendable] ?? [:]
    }

    /// The counts of PIN attempts: maximum, previous, remaining.
    package var counts: [Int?] {
      ["max_failure_count", "previous_failure_count", "remaining_failure_count"].map { json[$0] as? Int }
    }
  }

  package struct CurlError: Error, CustomStringConvertible {
    package let description: String
    package init(description: String) { self.description = description }
  }

  package static let program = "/usr/bin/curl"

  /// The time limit of an exchange that names none. It is long because machines may be busy: only a failing test waits
  /// this long.
  static let patience = 90

  /// - Parameter arguments: as on curl's command line, including the URL.
  package func callAsFunction(_ arguments: [String], input: [UInt8]? = nil) throws -> Reply {
    var options = try LibcurlExchange.Options(arguments)
    options.authority = options.authority ?? certificateAuthority
    return try LibcurlExchange().perform(options, input: input)
  }

  package func callAsFunction(_ arguments: String...) throws -> Reply { try self(arguments) }

  /// The arguments for the program itself, for a stream that outlives a call.
  package func all(_ arguments: [String]) -> [String] {
    ["--silent", "--show-error", "--include", "--max-time", "\(Self.patience)"]
      + (certificateAuthority.map { ["--cacert", $0] } ?? []) + arguments
  }

  static func reply(head: [UInt8], body: [UInt8]) throws -> Reply {
    let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
    guard let status = lines.first?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
      throw CurlError(description: "no status line in \(String(decoding: head, as: UTF8.self))")
    }
    var headers: [String: String] = [:]
    for line in lines.dropFirst() {
      let halves = line.split(separator: ":", maxSplits: 1)
      guard halves.count == 2 else { continue }
      headers[halves[0].lowercased()] = halves[1].trimmingCharacters(in: .whitespaces)
    }
    return Reply(status: status, headers: headers, body: body)
  }
}
