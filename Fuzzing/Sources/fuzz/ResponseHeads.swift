// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import JSONValues
import MobileAuth

@testable import CurlHTTP
@testable import PrivacyIDEAAdapter
@testable import ReferenceAdapter

/// The header of an HTTP response, line by line as libcurl delivers it, and the processing of its fields.
func readResponseHead(_ bytes: [UInt8]) {
  var head = ResponseHead()
  var rest = bytes[...]
  while !rest.isEmpty, !head.isComplete {
    let end = rest.firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? rest.endIndex
    let line = Array(rest[..<end])
    rest = rest[end...]
    guard (try? line.withUnsafeBytes({ try head.take(line: $0) })) != nil else { return }
  }
  var response = head.response
  response.body = Array(rest)
  hear(response)
  _ = TokenServerError(response)
  _ = TokenServerError(oauth: response)
}

private func hear(_ response: HTTPResponse) {
  let clock = ResponseClock(in: .test(ManualClock(wallClockMilliseconds: 0)))
  _ = clock.hear(response, JSONValue(parsing: response.body), comparedWith: 1_795_253_339_000)
  guard let now = clock.now else { return }
  // RFC 3339 has years of four digits.
  require(timeStamp(max(0, now)).utf8.count == 24, "a server's time can be written")
}
