// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import JSONValues
import Testing

@testable import BenchPage

@Suite(.timeLimit(.minutes(5))) struct PortTests {
  /// A socket that listens on a free port of 127.0.0.1.
  private func listener() throws -> (descriptor: Int32, port: Int) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, size) == 0 && listen(descriptor, 1) == 0 && getsockname(descriptor, $0, &size) == 0
      }
    }
    try #require(isListening)
    return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
  }

  @Test("A port that is in use is named, with the option for another") func portInUse() async throws {
    let (descriptor, port) = try listener()
    defer { close(descriptor) }
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
    let access = Access(port: port)
    let page = PageServer(
      access: access, files: try PageFiles(folder: root.appending(path: "Sources/Programs/BenchPage/Page").path),
      feed: Feed(), calls: [:], description: { .null })
    let bench = Bench(Bench.Plan(programs: "/none", folder: "/none", users: ["alice"]))
    let outcome = Outcome()
    let streams = Streams(
      application: page.application(port: port), access: access,
      ending: BenchEnd(bench, limit: .zero) { outcome.set($0) })
    let error = await #expect(throws: BenchError.self) { try await streams.run() }
    #expect(
      error?.description
        == "cannot listen on port \(port) of 127.0.0.1: Address already in use; choose another with --port")
    // It began the end: whatever does not end then, it is reported.
    try await outcome.wait()
    #expect(outcome.error == error?.description)
  }
}
