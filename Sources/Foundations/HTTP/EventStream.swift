// SPDX-License-Identifier: Apache-2.0
/// One event of a `text/event-stream` (WHATWG HTML §9.2).
public struct ServerSentEvent: Sendable, Equatable {
  /// The `event:` field; "message" if it is missing.
  public var name: String
  public var data: String
  /// The last `id:` on the stream; empty if there was none.
  public var id: String

  public init(name: String, data: String, id: String) {
    self.name = name
    self.data = data
    self.id = id
  }
}
