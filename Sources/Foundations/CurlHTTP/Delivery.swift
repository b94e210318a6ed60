// SPDX-License-Identifier: Apache-2.0
import HTTP

/// The consumer of one transfer. Releasing it aborts the transfer.
final class Delivery: Sendable {
  private let buffer: TransferBuffer
  private let thread: CurlThread

  init(of order: TransferOrder, by thread: CurlThread) {
    buffer = order.buffer
    self.thread = thread
    thread.post(.start(order))
  }

  deinit { abort() }

  func head() async throws(HTTPTransportError) -> HTTPResponse {
    try await next { $0.takeHead() }.get()
  }

  /// - Returns: the data since the previous call; nil at the end.
  func nextChunk() async throws(HTTPTransportError) -> [UInt8]? {
    switch await next({ $0.takeChunk() }) {
    case .chunk(let bytes, let wasPaused):
      if wasPaused { thread.post(.resume(buffer)) }
      return bytes
    case .end(let outcome):
      try outcome.get()
      return nil
    }
  }

  private func next<Item: Sendable>(_ take: @Sendable (TransferBuffer) -> Item?) async -> Item {
    await withTaskCancellationHandler {
      while true {
        if let item = take(buffer) { return item }
        await buffer.wait()
      }
    } onCancel: {
      abort()
    }
  }

  private func abort() {
    guard !buffer.isFinished else { return }
    buffer.finish(.failure(.canceled))
    thread.post(.abort(buffer))
  }
}
