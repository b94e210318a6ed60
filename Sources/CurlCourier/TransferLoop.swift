// SPDX-License-Identifier: Apache-2.0
import CCurl
import CertificateTrust
import Courier

/// The main loop of the HTTP client's thread. It sleeps in `curl_multi_poll` until a socket is ready, a timer of
/// libcurl or a deadline expires, or a command wakes it. Without transfers it never wakes.
final class TransferLoop {
  private let queue: CommandQueue
  private let judge: CertificateJudge
  private var transfers: [UnsafeMutableRawPointer: Transfer] = [:]

  init(obeying queue: CommandQueue) {
    self.queue = queue
    judge = CertificateJudge(trust: queue.trust, pinEnforcement: .elsewhere)
  }

  func run() {
    while obeyCommands() {
      var stillRunning: Int32 = 0
      curl_multi_perform(queue.multi, &stillRunning)
      settleFinished()
      settleOverdue()
      curl_multi_poll(queue.multi, nil, 0, millisecondsToNextDeadline(), nil)
    }
    for transfer in Array(transfers.values) { settle(transfer, .failure(.cancelled)) }
  }

  /// - Returns: false if the thread must end.
  private func obeyCommands() -> Bool {
    for command in queue.takeAll() {
      switch command {
      case .start(let order): start(order)
      case .resume(let mailbox): transfer(for: mailbox)?.resume()
      case .abort(let mailbox): transfer(for: mailbox).map { settle($0, .failure(.cancelled)) }
      case .end: return false
      }
    }
    return true
  }

  private func transfer(for mailbox: Mailbox) -> Transfer? {
    transfers.values.first { $0.order.mailbox === mailbox }
  }

  private func start(_ order: TransferOrder) {
    guard !order.mailbox.isFinished else { return }
    do throws(CourierError) {
      let transfer = try Transfer(order, judge: judge)
      curl_multi_add_handle(queue.multi, transfer.handle)
      transfers[transfer.handle] = transfer
    } catch {
      order.mailbox.finish(.failure(error))
    }
  }

  private func settleFinished() {
    var waiting: Int32 = 0
    while let message = curl_multi_info_read(queue.multi, &waiting) {
      guard message.pointee.msg == CURLMSG_DONE, let transfer = transfers[message.pointee.easy_handle] else { continue }
      settle(transfer, transfer.outcome(of: message.pointee.data.result))
    }
  }

  private func settleOverdue() {
    let now = ContinuousClock.now
    for transfer in Array(transfers.values) where transfer.deadline.map({ $0 <= now }) ?? false {
      settle(transfer, .failure(.timedOut(after: transfer.order.request.deadline)))
    }
  }

  private func settle(_ transfer: Transfer, _ outcome: Result<Void, CourierError>) {
    curl_multi_remove_handle(queue.multi, transfer.handle)
    transfers[transfer.handle] = nil
    transfer.order.mailbox.finish(outcome)
  }

  private func millisecondsToNextDeadline() -> Int32 {
    guard let next = transfers.values.compactMap(\.deadline).min() else { return .max }
    return Int32(clamping: (next - .now).wholeMilliseconds)
  }
}

extension Duration {
  /// Rounded up and never negative, so that a sleep of this length never ends early.
  var wholeMilliseconds: Int64 {
    let (seconds, attoseconds) = components
    let (milliseconds, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    return overflow ? .max : max(0, milliseconds + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
  }
}
