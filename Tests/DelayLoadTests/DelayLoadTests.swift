// SPDX-License-Identifier: Apache-2.0
import CDelayLoadProbe
import Testing

@Suite("Libraries that are loaded at their first use", .timeLimit(.minutes(5))) struct DelayLoadTests {
  @Test("The first call and the later ones pass all arguments: registers of both kinds, and the stack")
  func arguments() {
    for _ in 1...3 {
      let text = String(unsafeUninitializedCapacity: 200) { buffer in
        buffer.withMemoryRebound(to: CChar.self) { approval_probe_arguments($0.baseAddress, $0.count) }
        return buffer.firstIndex(of: 0) ?? 0
      }
      #expect(text == "1 2 3 4 5 6 7 8|1.5 2.5 3.5 4.5 5.5 6.5 7.5 8.5 9.5|end")
    }
  }

  @Test("Several threads may make the first call at the same time") func threads() async {
    await withTaskGroup { group in
      for _ in 1...16 { group.addTask { arguments() } }
    }
  }

  @Test("A library that is not installed ends the program, and names its package") func missingLibrary() async throws {
    let result = try #require(
      await #expect(processExitsWith: .exitCode(127), observing: [\.standardErrorContent]) {
        approval_probe_missing_library()
      })
    let message = String(decoding: result.standardErrorContent, as: UTF8.self)
    #expect(
      message.contains("libapproval-missing.so.9") && message.contains("package libapproval-missing9"), "\(message)")
  }

  @Test("A library without the function ends the program, and names both") func missingFunction() async throws {
    let result = try #require(
      await #expect(processExitsWith: .exitCode(127), observing: [\.standardErrorContent]) {
        approval_probe_missing_function()
      })
    let message = String(decoding: result.standardErrorContent, as: UTF8.self)
    #expect(message.contains("libcurl.so.4") && message.contains("approval_missing_function"), "\(message)")
  }
}
