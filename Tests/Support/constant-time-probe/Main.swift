// SPDX-License-Identifier: Apache-2.0
import CMemcheck
import Glibc

/// Takes secret digits the way that PINs go, under valgrind's memcheck, which reports every branch and every address
/// that depends on one. docs/constant-time.md says how to read it.
///
///     valgrind constant-time-probe path | early-exit | table | branch | naive-decoder
///
/// All but the first are what must be reported.
@main
enum Probe {
  static func main() async throws {
    guard memcheck_is_watching() != 0 else {
      print("valgrind does not run this: run it under valgrind, and build it where the package valgrind is installed")
      exit(69)
    }
    let typist = Typist()
    switch CommandLine.arguments.dropFirst().first {
    case "path": try await walk(typist)
    case "early-exit": Control.compareWithEarlyExit(try await typist.type("13579"), try await typist.type("13570"))
    case "table": Control.lookUp(try await typist.type("13579"))
    case "branch": Control.branch(try await typist.type("13579"))
    case "naive-decoder": Control.decodeNaively(0x5C)
    default: exit(64)
    }
    for (name, count) in Secrecy.counts.sorted(by: { $0.key < $1.key }) { print("revealed \(name): \(count)") }
  }
}
