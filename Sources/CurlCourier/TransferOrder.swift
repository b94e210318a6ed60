import Courier

/// What the courier's thread needs to know about one transfer, and where it leaves what arrives.
struct TransferOrder: Sendable {
  enum DeadlineScope: Sendable { case wholeAnswer, headOnly }

  let request: HTTPRequest
  let deadlineScope: DeadlineScope
  let mailbox = Mailbox()
  let deadline: ContinuousClock.Instant

  init(request: HTTPRequest, deadlineScope: DeadlineScope) {
    self.request = request
    self.deadlineScope = deadlineScope
    deadline = .now + request.deadline
  }
}

/// What the courier's thread can be told.
enum Command: Sendable {
  case start(TransferOrder)
  /// The mailbox has room again.
  case resume(Mailbox)
  /// Nobody waits at the mailbox any more.
  case abort(Mailbox)
  case end
}
