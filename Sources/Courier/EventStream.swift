/// One event of a `text/event-stream` (WHATWG HTML §9.2).
public struct ServerSentEvent: Sendable, Equatable {
  /// `event:`; "message" when the field is missing.
  public var name: String
  public var data: String
  /// `id:` as last seen on the stream, empty if none.
  public var id: String

  public init(name: String, data: String, id: String) {
    self.name = name
    self.data = data
    self.id = id
  }
}
