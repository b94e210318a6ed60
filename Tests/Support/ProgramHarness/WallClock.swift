// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A library that sets back only the wall clock.
/// - Returns: the value for `LD_PRELOAD`.
package func wallClock(secondsBack: Int, in folder: TemporaryDirectory) async throws -> String {
  let repository = URL(filePath: #filePath).appending(path: "../../../..").standardized
  let source = repository.appending(path: "Sources/Programs/BenchPage/Clock/wall-clock.c").path
  let library = folder.file("clock.so")
  try await run("clang", ["-shared", "-fPIC", "-DSECONDS_BACK=\(secondsBack)", "-o", library, source]).succeeded()
  return library
}
