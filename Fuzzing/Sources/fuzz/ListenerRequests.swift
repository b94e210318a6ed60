// SPDX-License-Identifier: Apache-2.0
@testable import NetworkDaemon

/// A connection to the push listener, whole and in pieces: both must get the same response.
func readListenerRequest(_ bytes: [UInt8]) {
  var input = Input([0] + bytes, choices: 1)
  let seed = input.byte()
  let whole = input.rest.isEmpty ? nil : take([input.bytes])
  let inPieces = take(pieces(of: input.rest, seed: seed))
  // Data after a complete request may arrive too late to be detected.
  if whole != inPieces { require(whole == .bad && inPieces == .ok, "\(String(describing: whole)) in one piece") }
}

private func take(_ chunks: [[UInt8]]) -> PushPost.Status? {
  var post = PushPost()
  for chunk in chunks {
    if let status = post.take(chunk) { return status }
  }
  return nil
}
