// SPDX-License-Identifier: Apache-2.0
import JSONValues
import Testing

@testable import BenchPage

@Suite(.timeLimit(.minutes(5))) struct OpenRequestsTests {
  @Test("Whatever the number of open requests, the newest result is read, and each request can be canceled")
  func newest() {
    var requests = OpenRequests()
    for number in 1...OpenRequests.mostWatched + 1 {
      let isNew = requests.insert("\(number)")
      #expect(isNew && requests.isWatched("\(number)"))
    }
    #expect(requests.contains("1") && !requests.isWatched("1"))
    #expect(requests.isWatched("2"))
  }

  @Test("A request is read once, and not after its end") func ended() {
    var requests = OpenRequests()
    let areNew = [requests.insert("a"), requests.insert("a")]
    #expect(areNew == [true, false])
    requests.remove("a")
    #expect(!requests.contains("a") && !requests.isWatched("a"))
  }

  @Test("The number of requests is limited") func limited() {
    var requests = OpenRequests()
    for number in 0...OpenRequests.mostKept { _ = requests.insert("\(number)") }
    #expect(!requests.contains("0") && requests.contains("1") && requests.isWatched("\(OpenRequests.mostKept)"))
  }

  private let start = ContinuousClock.now

  private func pause(
    at time: Duration, of total: Duration = .seconds(86_403), _ status: Int? = 200, _ text: String = "{}"
  )
    -> Duration?
  {
    let result = JSONValue(parsing: Array(text.utf8)) ?? .null
    return ReadSchedule(from: start, for: total).pause(after: status, result, now: start + time)
  }

  @Test("A result is read four times a second in the first minute, later rarely, also without an answer")
  func pauses() {
    for status in [200, 503, nil] {
      for seconds in [0, 1, 30, 60] { #expect(pause(at: .seconds(seconds), status) == .milliseconds(250)) }
      #expect(pause(at: .seconds(240), status) == .seconds(1))
      for seconds in [1200, 43_200, 86_000] { #expect(pause(at: .seconds(seconds), status) == .seconds(5)) }
    }
  }

  @Test("The last read is at the end") func lastRead() {
    #expect(pause(at: .seconds(1998), of: .seconds(2000)) == .seconds(2))
    #expect(pause(at: .seconds(2000), of: .seconds(2000)) == nil)
  }

  @Test("Nothing is read after a final result, nor where none can come") func noFurtherRead() {
    for status in [401, 403, 404] { #expect(pause(at: .seconds(1), status) == nil) }
    #expect(pause(at: .seconds(1), 200, #"{"is_authenticated":false,"not_authenticated_reason":null}"#) != nil)
    for text in [#"{"is_authenticated":true}"#, #"{"not_authenticated_reason":{"reason":"expired"}}"#] {
      #expect(pause(at: .seconds(1), 200, text) == nil)
    }
  }
}
