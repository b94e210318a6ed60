// SPDX-License-Identifier: Apache-2.0
import Courier

/// The consumer of one transfer. Releasing it aborts the transfer.
final class Delivery: Sendable {
  private let mailbox: Mailbox
  private let thread: CourierThread

  init(of order: TransferOrder, by thread: CourierThread) {
    mailbox = order.mailbox
    self.thread = thread
    thread.post(.start(order))
  }

  deinit { abort() }

  func head() async throws(CourierError) -> HTTPResponse {
    try await next { $0.takeHead() }.get()
  }

  /// - Returns: the data since the previous call; nil at the end.
  func nextChunk() async throws(CourierError) -> [UInt8]? {
    switch await next({ $0.takeChunk() }) {
    case .chunk(let bytes, let wasPaused):
      if wasPaused { thread.post(.resume(mailbox)) }
      return bytes
    case .end(let outcome):
      try outcome.get()
      return nil
    }
  }

  private func next<Item: Sendable>(_ take: @Sendable (Mailbox) -> Item?) async -> Item {
    await withTaskCancellationHandler {
      while true {
        if let item = take(mailbox) { return item }
        await mailbox.wait()
      }
    } onCancel: {
      abort()
    }
  }

  private func abort() {
    guard !mailbox.isFinished else { return }
    mailbox.finish(.failure(.cancelled))
    thread.post(.abort(mailbox))
  }
}
