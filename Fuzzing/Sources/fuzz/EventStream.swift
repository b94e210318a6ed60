// SPDX-License-Identifier: Apache-2.0
import HTTP
import ReferenceProtocol

@testable import ReferenceAdapter

/// A token server's event stream, whole and in the pieces that a network delivers: both must give the same events.
func readEventStream(_ bytes: [UInt8]) {
  var input = Input([0] + bytes, choices: 1)
  let seed = input.byte()
  let whole = decode([input.bytes])
  let inPieces = decode(pieces(of: input.rest, seed: seed))
  require(whole.failed == inPieces.failed, "a stream fails in pieces as it does in one")
  guard !whole.failed else { return }
  require(whole.events == inPieces.events, "pieces make the same events")
  for event in whole.events {
    _ = try? JSON.decode(DeviceEvent.self, from: Array(event.data.utf8)).hint
  }
}

private func decode(_ chunks: [[UInt8]]) -> (events: [ServerSentEvent], failed: Bool) {
  var decoder = EventStreamDecoder()
  var events: [ServerSentEvent] = []
  for chunk in chunks {
    guard let more = try? decoder.decode(chunk) else { return (events, true) }
    events += more
  }
  return (events, false)
}
