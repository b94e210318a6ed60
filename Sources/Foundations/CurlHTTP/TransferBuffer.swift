// SPDX-License-Identifier: Apache-2.0
import HTTP
import Synchronization

/// The buffer between the HTTP client's thread and the one task that waits for a transfer. Holds at most `capacity`
/// bytes of body: when it is full the transfer is paused, and TCP flow control stops the server.
final class TransferBuffer: Sendable {
  static let capacity = 64 << 10

  private struct Content {
    var head: HTTPResponse?
    var body: [UInt8] = []
    var outcome: Result<Void, HTTPTransportError>?
    var isPaused = false
    /// Whether the task need not see the rest before its end.
    var isGathering = false
    /// Whether the content has changed since the last `wait`.
    var hasNews = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let content = Mutex(Content())
  private let gatheredBytes: Int?

  /// - Parameter gathersUpTo: the task is woken once for a successful response that says that it is not longer than
  ///   this, when it is complete; nil to wake it for each part of a response.
  init(gathersUpTo gatheredBytes: Int?) { self.gatheredBytes = gatheredBytes.map { min($0, Self.capacity) } }

  var isFinished: Bool { content.withLock { $0.outcome != nil } }

  func put(head: HTTPResponse) {
    let length = head.headers["Content-Length"].flatMap { Int($0) }
    let isShort = gatheredBytes.flatMap { limit in length.map { (0...limit).contains($0) } } ?? false
    update { content in
      content.head = head
      content.isGathering = isShort && (200..<300).contains(head.status)
    }
  }

  /// - Returns: false if the buffer is full. The transfer must then pause until the task has read the buffer.
  func put(_ bytes: UnsafeRawBufferPointer) -> Bool {
    update { content in
      content.isPaused = !content.body.isEmpty && content.body.count + bytes.count > Self.capacity
      if !content.isPaused { content.body += bytes }
      return !content.isPaused
    }
  }

  /// Ends the transfer; only the first outcome is used. After a cancellation the buffer is discarded, otherwise data
  /// that arrived before the end can still be read. A success without a head is a failure, so that no task waits for
  /// one.
  func finish(_ outcome: Result<Void, HTTPTransportError>) {
    update { content in
      guard content.outcome == nil else { return }
      content.outcome = outcome
      if case .success = outcome, content.head == nil {
        content.outcome = .failure(.malformed("the response ended before its head"))
      }
      if case .failure(.canceled) = outcome { (content.head, content.body) = (nil, []) }
    }
  }

  func takeHead() -> Result<HTTPResponse, HTTPTransportError>? {
    content.withLock { content in
      if let head = content.head { return .success(head) }
      if case .failure(let error) = content.outcome { return .failure(error) }
      return nil
    }
  }

  enum Chunk {
    case chunk([UInt8], wasPaused: Bool)
    case end(Result<Void, HTTPTransportError>)
  }

  func takeChunk() -> Chunk? {
    content.withLock { content in
      guard !content.body.isEmpty else { return content.outcome.map { .end($0) } }
      defer { (content.body, content.isPaused) = ([], false) }
      return .chunk(content.body, wasPaused: content.isPaused)
    }
  }

  /// Waits for the next change since the last call. Returns immediately if there was one.
  func wait() async {
    await withCheckedContinuation { continuation in
      let isNews = content.withLock { content in
        precondition(content.waiter == nil, "only one task may read a response")
        if !content.hasNews { content.waiter = continuation }
        defer { content.hasNews = false }
        return content.hasNews
      }
      if isNews { continuation.resume() }
    }
  }

  private func update<Answer>(_ change: (inout Content) -> Answer) -> Answer {
    var waiter: CheckedContinuation<Void, Never>?
    defer { waiter?.resume() }
    return content.withLock { content in
      let answer = change(&content)
      guard !content.isGathering || content.isPaused || content.outcome != nil else { return answer }
      (waiter, content.waiter) = (content.waiter, nil)
      content.hasNews = waiter == nil
      return answer
    }
  }
}
