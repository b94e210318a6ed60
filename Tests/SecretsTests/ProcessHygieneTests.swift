// SPDX-License-Identifier: Apache-2.0
import Glibc
import Testing

@testable import Secrets

@Suite("A process that forbids memory dumps", .timeLimit(.minutes(5))) struct ProcessHygieneTests {
  /// prctl is variadic, so Swift cannot call it by name. On Linux, integers are passed in the same way for variadic
  /// functions.
  private typealias ProcessControl = @convention(c) (Int32, UInt, UInt, UInt, UInt) -> Int32

  /// Afterwards dumps are permitted again, so that other tests of the process can be debugged.
  @Test("Leaves no core dump and admits no debugger") func leavesNoCoreDumpAndAdmitsNoDebugger() throws {
    let control = unsafeBitCast(try #require(dlsym(nil, "prctl")), to: ProcessControl.self)
    let (getDumpable, setDumpable) = (Int32(3), Int32(4))
    defer { _ = control(setDumpable, 1, 0, 0, 0) }
    #expect(forbidMemoryDumps())
    #expect(control(getDumpable, 0, 0, 0, 0) == 0)
    var limit = rlimit(rlim_cur: 1, rlim_max: 1)
    getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    #expect(limit.rlim_cur == 0 && limit.rlim_max == 0)
  }

  /// Fails if most secrets of librnp are outside of locked memory on a board with large pages.
  @Test("The locked memory of libraries is eight pages, whatever their size") func lockedPages() {
    #expect(lockedKibibytes(pageSize: 4096) == 32)
    #expect(lockedKibibytes(pageSize: 16384) == 128)
  }
}
