@testable import ApprovalToken

/// A connection to the push listener, whole and in pieces: both get the same answer.
func readListenerRequest(_ bytes: [UInt8]) {
  var input = Input([0] + bytes, choices: 1)
  let seed = input.byte()
  let whole = input.rest.isEmpty ? nil : take([input.bytes])
  let inPieces = take(pieces(of: input.rest, seed: seed))
  // What comes behind a whole request may come too late to be seen.
  if whole != inPieces { require(whole == .bad && inPieces == .ok, "\(String(describing: whole)) in one piece") }
}

private func take(_ chunks: [[UInt8]]) -> PushPost.Status? {
  var post = PushPost()
  for chunk in chunks {
    if let status = post.take(chunk) { return status }
  }
  return nil
}
