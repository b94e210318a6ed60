// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import DisplayText

extension VerifiedSummary {
  /// The maximum length of a line in Unicode scalars. The terminal shows every character of the text.
  private static let longestLine = 1000

  /// The texts for a terminal. Each line begins with "verified", so that a line of the text cannot be mistaken for
  /// another line of the output.
  var lines: [String] {
    let text = message ?? pushMessage ?? ""
    let parts = text.split(separator: "\n", omittingEmptySubsequences: true).flatMap { Self.pieces(of: String($0)) }
    return ["verified  type \(type ?? "-") (\(signature))"].map { $0.sanitized(atMost: Self.longestLine) }
      + parts.map { "verified  \($0)" }
  }

  private static func pieces(of line: String) -> [String] {
    var (rest, pieces) = (line[...], [String]())
    while !rest.isEmpty {
      let scalars = rest.unicodeScalars
      let end =
        scalars.index(scalars.startIndex, offsetBy: longestLine, limitedBy: scalars.endIndex) ?? scalars.endIndex
      pieces.append(String(rest[..<end]).sanitized(atMost: longestLine))
      rest = rest[end...]
    }
    return pieces
  }
}
