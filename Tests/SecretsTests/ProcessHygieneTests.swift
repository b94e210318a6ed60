import Glibc
import Secrets
import Testing

@Suite struct `A process that forbids memory dumps` {
  /// prctl is variadic, which Swift cannot call by its name; integers are passed alike either way on Linux.
  private typealias ProcessControl = @convention(c) (Int32, UInt, UInt, UInt, UInt) -> Int32

  /// Dumps are allowed again afterwards, for whoever has to debug the other tests of the process.
  @Test func `Leaves no core and lets no debugger in`() throws {
    let control = unsafeBitCast(try #require(dlsym(nil, "prctl")), to: ProcessControl.self)
    let (getDumpable, setDumpable) = (Int32(3), Int32(4))
    defer { _ = control(setDumpable, 1, 0, 0, 0) }
    #expect(forbidMemoryDumps())
    #expect(control(getDumpable, 0, 0, 0, 0) == 0)
    var limit = rlimit(rlim_cur: 1, rlim_max: 1)
    getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    #expect(limit.rlim_cur == 0 && limit.rlim_max == 0)
  }
}
