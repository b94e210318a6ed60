// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import Synchronization
import Testing

@testable import CurlHTTP

/// Each time the task that waits for a response is woken is a change of threads.
@Suite("Buffers of responses", .timeLimit(.minutes(5))) struct TransferBufferTests {
  private func head(_ length: String?, status: Int = 200) -> HTTPResponse {
    var response = HTTPResponse(status: status)
    response.headers["Content-Length"] = length
    return response
  }

  private func put(_ bytes: [UInt8], into buffer: TransferBuffer) -> Bool { bytes.withUnsafeBytes { buffer.put($0) } }

  private final class Flag: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
  }

  /// - Parameter limit: how long it waits for that at least.
  /// - Returns: whether the reader is woken before the response is complete.
  private func isWokenEarly(
    _ buffer: TransferBuffer, _ head: HTTPResponse, within limit: Duration = .zero
  ) async throws -> Bool {
    let isWoken = Flag()
    let reader = Task {
      await buffer.wait()
      isWoken.set()
    }
    for _ in 0..<20 { await Task.yield() }
    buffer.put(head: head)
    #expect(put([1, 2], into: buffer))
    let end = ContinuousClock.now + limit
    repeat { for _ in 0..<2000 where !isWoken.isSet { await Task.yield() } } while !isWoken.isSet && .now < end
    let isEarly = isWoken.isSet
    buffer.finish(.success(()))
    try await reader.finished()
    return isEarly
  }

  @Test("The reader of a short response is woken once, at its end") func short() async throws {
    let buffer = TransferBuffer(gathersUpTo: 100)
    #expect(try await !isWokenEarly(buffer, head("2")))
    #expect((try? buffer.takeHead()?.get())?.status == 200)
    guard case .chunk([1, 2], wasPaused: false) = buffer.takeChunk() else {
      Issue.record("no body")
      return
    }
  }

  /// A task that waits for the head would wait forever.
  @Test("A success without a head is a failure") func noHead() {
    let buffer = TransferBuffer(gathersUpTo: nil)
    #expect(buffer.takeHead() == nil)
    buffer.finish(.success(()))
    guard case .failure(.malformed) = buffer.takeHead() else {
      Issue.record("no failure")
      return
    }
  }

  @Test(
    "Others are read as they arrive",
    arguments: [
      (nil, "2", 200), (100, nil, 200), (100, "101", 200), (100, "-1", 200), (100, "2", 302), (100, "2", 401),
    ] as [(Int?, String?, Int)])
  func others(limit: Int?, length: String?, status: Int) async throws {
    #expect(
      try await isWokenEarly(TransferBuffer(gathersUpTo: limit), head(length, status: status), within: .seconds(60)))
  }

  /// Fails if a response that is longer than it says stops the transfer forever.
  @Test("A full buffer wakes its reader") func full() async {
    let buffer = TransferBuffer(gathersUpTo: 100)
    buffer.put(head: head("2"))
    #expect(put([UInt8](repeating: 0, count: TransferBuffer.capacity), into: buffer))
    #expect(!put([1], into: buffer))
    await buffer.wait()
    guard case .chunk(let bytes, wasPaused: true) = buffer.takeChunk() else {
      Issue.record("no body")
      return
    }
    #expect(bytes.count == TransferBuffer.capacity)
  }
}
