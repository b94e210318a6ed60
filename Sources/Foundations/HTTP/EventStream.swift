// SPDX-License-Identifier: Apache-2.0
/// One event of a `text/event-stream` (WHATWG HTML §9.2).
package struct ServerSentEvent: Sendable, Equatable {
  /// The `event:` field; "message" if it is missing.
  package var name: String
  package var data: String
  /// The last `id:` on the stream; empty if there was none.
  package var id: String

  package init(name: String, data: String, id: String) {
    self.name = name
    self.data = data
    self.id = id
  }
}
