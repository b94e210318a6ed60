// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc

/// Stops the children of this process that run the program while `body` runs: they see only what is there after it.
/// - Parameter word: what their environment contains.
/// - Returns: the number of such children.
package func withStoppedChildren(
  of program: String, with word: String, _ body: () async throws -> Void
) async throws -> Int {
  let children = ((try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []).compactMap { pid_t($0) }
    .filter { process in
      let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
      let line = (try? String(contentsOfFile: "/proc/\(process)/cmdline", encoding: .utf8)) ?? ""
      let environment = (try? String(contentsOfFile: "/proc/\(process)/environ", encoding: .utf8)) ?? ""
      return status.contains("\nPPid:\t\(getpid())\n") && line.prefix { $0 != "\0" }.hasSuffix("/" + program)
        && environment.contains(word)
    }
  for child in children { kill(child, SIGSTOP) }
  defer { for child in children { kill(child, SIGCONT) } }
  try await body()
  return children.count
}
