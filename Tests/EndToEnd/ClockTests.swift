import Foundation
import Glibc
import Testing

extension EndToEnd {
  /// A board without a clock chip wakes up in 1970. Debian's `faketime` makes the token believe so.
  @Suite struct Clocks {
    private static let library = "/usr/lib/\(machine)-linux-gnu/faketime/libfaketime.so.1"

    /// The library adds a variable to the environment of the first program it is loaded into, and a Swift program then
    /// does not find its arguments: so that first program is a second `env`.
    private static let launcher = [
      "env", "LD_PRELOAD=\(library)", "FAKETIME=@1970-01-01 00:10:00", "FAKETIME_DONT_FAKE_MONOTONIC=1", "env",
    ]

    @Test(.enabled(if: FileManager.default.fileExists(atPath: library), "needs Debian's faketime"))
    func aTokenIn1970EnrolsAndApproves() async throws {
      let formerLeftovers = leftovers()
      defer {
        for file in leftovers().subtracting(formerLeftovers) { try? FileManager.default.removeItem(atPath: file) }
      }
      try await withScene(launcher: Self.launcher) { scene in
        #expect(try scene.token.log.lines.first?.hasPrefix("1970-01-01") == true)
        let transaction = try await scene.ask()
        try await scene.token.answer(transaction, with: .hold)
        #expect(try await scene.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await scene.portal.finalResult(of: transaction).isAuthenticated)
        #expect(try await scene.token.command("doctor").succeeded().output.contains("days behind"))
      }
    }
  }
}

/// What the library leaves in shared memory when a program is replaced by another.
private func leftovers() -> Set<String> {
  let names = (try? FileManager.default.contentsOfDirectory(atPath: "/dev/shm")) ?? []
  return Set(names.filter { $0.contains("faketime_") }.map { "/dev/shm/\($0)" })
}

/// As Debian names it.
private let machine: String = {
  var name = utsname()
  uname(&name)
  return withUnsafeBytes(of: name.machine) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
}()
