// SPDX-License-Identifier: Apache-2.0
import Testing
import TokenServerCore

@testable import ReferenceServer

/// When old results are deleted, while the clock is set.
@Suite(.timeLimit(.minutes(5))) struct DeletionTests {
  private static let interval = Duration.seconds(600)

  /// Whether a deletion is due at these times, in seconds.
  private func due(_ times: [(clock: Int64, uptime: Int64)]) -> [Bool] {
    var deletion = Deletion()
    return times.map {
      deletion.isDue(every: Self.interval, now: Timestamp($0.clock * 1000), uptime: .seconds($0.uptime))
    }
  }

  @Test("It is due at the start, and every ten minutes") func regular() {
    #expect(
      due([(1000, 0), (1599, 599), (1600, 600), (2199, 1199), (2200, 1200)]) == [true, false, true, false, true])
  }

  @Test("A clock that is set forward and back deletes nothing") func forwardAndBack() {
    let year: Int64 = 31_536_000
    #expect(
      due([(1000, 0), (year, 700), (year + 5, 705), (1710, 710), (2300, 1300)]) == [true, false, false, false, true])
  }

  @Test("A clock that stays is believed after ten minutes, and one that is set back does not end the deletion")
  func changed() {
    #expect(
      due([(1000, 0), (100_000, 700), (100_600, 1300), (1000, 1301), (1600, 1901)]) == [true, false, true, false, true])
  }
}
