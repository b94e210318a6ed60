// SPDX-License-Identifier: Apache-2.0

/// The order in which lists were requested. Several tasks read the lists of one source, and a response can be late: an
/// older list must not replace a newer one.
package struct ListOrder<Source: Hashable & Sendable>: Sendable {
  private var last = 0
  private var applied: [Source: Int] = [:]

  package init() {}

  /// Returns the number of a list that is requested after this.
  package mutating func next() -> Int {
    last += 1
    return last
  }

  /// Records that a list is applied.
  /// - Returns: false if a newer one of its source was applied before; nothing changes then.
  package mutating func apply(_ number: Int, of source: Source) -> Bool {
    guard number > applied[source, default: 0] else { return false }
    applied[source] = number
    return true
  }
}
