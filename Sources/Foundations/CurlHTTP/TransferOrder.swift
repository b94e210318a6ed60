// SPDX-License-Identifier: Apache-2.0
import HTTP

/// One transfer for the HTTP client's thread: the request, its deadline and the buffer for the response.
struct TransferOrder: Sendable {
  enum DeadlineScope: Sendable { case wholeAnswer, headOnly }

  let request: HTTPRequest
  let deadlineScope: DeadlineScope
  let buffer: TransferBuffer
  let deadline: ContinuousClock.Instant

  init(request: HTTPRequest, deadlineScope: DeadlineScope) {
    self.request = request
    self.deadlineScope = deadlineScope
    buffer = TransferBuffer(gathersUpTo: deadlineScope == .wholeAnswer ? request.maximumBodyBytes : nil)
    deadline = .now + request.deadline
  }
}

/// A command to the HTTP client's thread.
enum Command: Sendable {
  case start(TransferOrder)
  /// The buffer has free space again.
  case resume(TransferBuffer)
  /// The consumer of the buffer was released.
  case abort(TransferBuffer)
  /// Carried out by noting the number.
  case note(Int)
  case end
}
