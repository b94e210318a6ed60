// SPDX-License-Identifier: Apache-2.0

/// An error with a message for the user of the bench.
struct BenchError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
