// SPDX-License-Identifier: Apache-2.0
import CCurl
import CertificateTrust
import HTTP
import Threads

/// The main loop of the HTTP client's thread. It sleeps in `curl_multi_poll` until a socket is ready, a timer of
/// libcurl or a deadline expires, or a command wakes it. Without transfers it never wakes.
final class TransferLoop {
  private let queue: CommandQueue
  private let certificateVerifier: CertificateVerifier
  private var transfers: [UnsafeMutableRawPointer: Transfer] = [:]

  init(obeying queue: CommandQueue) {
    self.queue = queue
    certificateVerifier = CertificateVerifier(trust: queue.trust, pinEnforcement: .elsewhere)
  }

  func run() {
    while runCommands() {
      var stillRunning: Int32 = 0
      curl_multi_perform(queue.multi, &stillRunning)
      finishCompleted()
      finishOverdue()
      curl_multi_poll(queue.multi, nil, 0, millisecondsToNextDeadline(), nil)
    }
    for transfer in Array(transfers.values) { finish(transfer, .failure(.canceled)) }
  }

  /// - Returns: false if the thread must end.
  private func runCommands() -> Bool {
    for command in queue.takeAll() {
      switch command {
      case .start(let order): start(order)
      case .resume(let buffer): transfer(for: buffer)?.resume()
      case .abort(let buffer): transfer(for: buffer).map { finish($0, .failure(.canceled)) }
      case .note(let number): queue.made(note: number)
      case .end: return false
      }
    }
    return true
  }

  private func transfer(for buffer: TransferBuffer) -> Transfer? {
    transfers.values.first { $0.order.buffer === buffer }
  }

  private func start(_ order: TransferOrder) {
    guard !order.buffer.isFinished else { return }
    do throws(HTTPTransportError) {
      let transfer = try Transfer(order, verifier: certificateVerifier)
      curl_multi_add_handle(queue.multi, transfer.handle)
      transfers[transfer.handle] = transfer
    } catch {
      order.buffer.finish(.failure(error))
    }
  }

  private func finishCompleted() {
    var waiting: Int32 = 0
    while let message = curl_multi_info_read(queue.multi, &waiting) {
      guard message.pointee.msg == CURLMSG_DONE, let transfer = transfers[message.pointee.easy_handle] else { continue }
      finish(transfer, transfer.outcome(of: message.pointee.data.result))
    }
  }

  private func finishOverdue() {
    let now = ContinuousClock.now
    for transfer in Array(transfers.values) where transfer.deadline.map({ $0 <= now }) ?? false {
      finish(transfer, .failure(.timedOut(after: transfer.order.request.deadline)))
    }
  }

  private func finish(_ transfer: Transfer, _ outcome: Result<Void, HTTPTransportError>) {
    curl_multi_remove_handle(queue.multi, transfer.handle)
    transfers[transfer.handle] = nil
    transfer.order.buffer.finish(outcome)
  }

  private func millisecondsToNextDeadline() -> Int32 {
    guard let next = transfers.values.compactMap(\.deadline).min() else { return .max }
    return (next - .now).pollMilliseconds
  }
}
