// SPDX-License-Identifier: Apache-2.0
import HTTP
import Testing

@Suite(.timeLimit(.minutes(5))) struct HTTPDateTests {
  /// The last one exceeds the year 9999.
  @Test(
    "A Date header is a time up to the end of the year 9999, or rejected",
    arguments: [
      ("Sun, 06 Nov 1994 08:49:37 GMT", Int64(784_111_777)),
      ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
      ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
      ("Fri, 31 Dec 9999 23:59:60 GMT", nil),
    ])
  func httpDate(text: String, seconds: Int64?) { #expect(unixSeconds(httpDate: text) == seconds) }
}
