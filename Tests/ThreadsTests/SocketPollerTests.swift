// SPDX-License-Identifier: Apache-2.0
import Glibc
import Testing

@testable import Threads

@Suite(.timeLimit(.minutes(1))) struct SocketPollerTests {
  /// As Linux does before 5.11, and filters of containers that do not know the call.
  @Test("A wait lasts its time where the kernel does not have epoll_pwait2", arguments: [ENOSYS, EPERM])
  func waitsWithoutNanoseconds(code: Int32) async throws {
    let waited = await withCheckedContinuation { (continuation: CheckedContinuation<Duration?, Never>) in
      LoopThread(named: "filtered") {
        guard refuse(epollPwait2, with: code) else { return continuation.resume(returning: nil) }
        let poller = SocketPoller()
        let start = ContinuousClock.now
        let ready = poller.waitOnce(atMost: 50_500_000)
        continuation.resume(returning: ready.isEmpty ? ContinuousClock.now - start : .zero)
      }
      .detach()
    }
    #expect(try #require(waited, "the filter was not installed") >= Duration.microseconds(50_500))
  }
}

/// The number of epoll_pwait2(2) on amd64 and arm64.
private let epollPwait2: UInt32 = 441

/// Lets a system call of this thread fail from now on, by a filter of seccomp(2).
private func refuse(_ call: UInt32, with code: Int32) -> Bool {
  typealias Control = @convention(c) (Int32, UInt, UInt, UInt, UInt) -> Int32
  guard let symbol = dlsym(nil, "prctl") else { return false }
  let control = unsafeBitCast(symbol, to: Control.self)
  // struct sock_filter: code, jump if true, jump if false, value.
  let instructions: [(UInt16, UInt8, UInt8, UInt32)] = [
    (0x20, 0, 0, 0),  // the number of the call
    (0x15, 0, 1, call), (0x06, 0, 0, 0x0005_0000 | UInt32(code)), (0x06, 0, 0, 0x7FFF_0000),
  ]
  var program = instructions.flatMap { code, yes, no, value in
    withUnsafeBytes(of: code, Array.init) + [yes, no] + withUnsafeBytes(of: value, Array.init)
  }
  return program.withUnsafeMutableBytes { bytes in
    // struct sock_fprog: the count, and the address.
    var filter = (UInt(instructions.count), UInt(bitPattern: bytes.baseAddress))
    return withUnsafeMutablePointer(to: &filter) { filter in
      // PR_SET_NO_NEW_PRIVS; PR_SET_SECCOMP with SECCOMP_MODE_FILTER.
      control(38, 1, 0, 0, 0) == 0 && control(22, 2, UInt(bitPattern: filter), 0, 0) == 0
    }
  }
}
