// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import Glibc
import Testing

@testable import TokenDaemon

@Suite(.timeLimit(.minutes(5))) struct StateLockTests {
  @Test("An unwritable lock file is not reported as another serve, and a locked one is")
  func lock() throws {
    // Not even root can create a file in /proc/self.
    let refused = try #require(throws: CommandError.self) { try lockState("/proc/self") }
    #expect(refused.description.contains("/proc/self/serve.lock cannot be written: "))
    #expect(!refused.description.contains("another"))
    var template = Array("/tmp/lock-tests-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let directory = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    defer {
      unlink(directory + "/serve.lock")
      rmdir(directory)
    }
    try lockState(directory)
    let running = try #require(throws: CommandError.self) { try lockState(directory) }
    #expect(running.code == .inUse && refused.code == .unavailable)
    #expect(running.description == "another `approval-token serve` uses \(directory)")
  }
}
