// SPDX-License-Identifier: Apache-2.0
import Glibc
import JSONValues
import Synchronization
import Threads

/// What happens at the portal, the server and the token, for any number of pages. The recent past is kept, so that a
/// page that is loaded again shows it.
final class Feed: Sendable {
  /// Kinds of entries, by their names on the page.
  enum Kind: String, Sendable {
    /// The state of the board, of which only the latest counts.
    case board
    /// What the bench consists of, of which only the latest counts.
    case programs
    /// The state of one token, of which only the latest counts.
    case place
    case portal, result, callback, token, led, user, audit, fault, account
  }

  struct Frame: Sendable {
    let number: Int
    let text: String
  }

  static let mostKept = 400
  static let mostPages = 16
  private static let mostWaiting = 256

  private struct Subject: Hashable {
    let kind: Kind
    let token: Int?
  }

  private struct State {
    var number = 0
    var kept: [Frame] = []
    var latest: [Subject: Frame] = [:]
    var pages = StreamFollowers<Frame>()
    var isClosed = false
  }

  private let state = Mutex(State())

  /// - Parameter token: the number of the token; nil for what is about none.
  func publish(_ kind: Kind, _ value: JSONValue, of token: Int? = nil) {
    state.withLock { state in
      state.number += 1
      let entry = JSONValue.object([
        "kind": .text(kind.rawValue), "at_ms": .integer(wallClockMilliseconds()), "value": value,
        "token": token.map { .integer(Int64($0)) } ?? .null,
      ])
      let frame = Frame(number: state.number, text: "id: \(state.number)\ndata: \(entry.canonical)\n\n")
      if [.board, .programs, .place].contains(kind) {
        state.latest[Subject(kind: kind, token: token)] = frame
      } else {
        state.kept = (state.kept + [frame]).suffix(Self.mostKept)
      }
      state.pages.send(frame)
    }
  }

  /// What one page reads, until `cancel`.
  struct Subscription: Sendable {
    let frames: AsyncStream<Frame>
    fileprivate let page: AsyncStream<Frame>.Continuation

    func cancel() { page.finish() }
  }

  /// The latest states, the past after the entry with this number, then each entry. A page that is too slow loses the
  /// oldest.
  /// - Returns: nil if there are too many pages.
  func entries(after number: Int) -> Subscription? {
    let (frames, page) = AsyncStream.makeStream(
      of: Frame.self, bufferingPolicy: .bufferingNewest(Self.mostKept + Self.mostWaiting))
    let isAccepted = state.withLock { state in
      state.pages.removeEnded()
      guard !state.isClosed, state.pages.count < Self.mostPages else { return false }
      // A number of an earlier bench is not one of this.
      let number = number <= state.number ? number : 0
      let past = state.kept.filter { $0.number > number }
      // Without numbers, so that a page that connects again still gets the past.
      let latest = state.latest.values.sorted { $0.number < $1.number }.map { frame in
        Frame(number: frame.number, text: "event: latest\n" + frame.text.drop { $0 != "\n" }.dropFirst())
      }
      state.pages.add(page, first: latest + past)
      return true
    }
    return isAccepted ? Subscription(frames: frames, page: page) : nil
  }

  /// Ends all streams.
  func close() {
    state.withLock { state in
      state.isClosed = true
      state.pages.finish()
    }
  }
}

/// Milliseconds since 1970.
func wallClockMilliseconds() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_REALTIME, &time)
  return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
}
